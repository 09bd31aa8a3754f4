"""Columns within a width: whole words, whole numbers, low rows, and nothing lost."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kdx.report.fit import Column, are_words, column, fit, fold, of_listing

words = st.text("abcdefgh", min_size=1, max_size=12)
texts = st.lists(st.one_of(words, st.just("/"), st.just("↑"), st.from_regex(r"[0-9]{1,3}", fullmatch=True)), max_size=8)


def of(*folded: str, whole: tuple[str, ...] = ()) -> Column:
    return column(folded, whole, len)


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("product over direct-sum", 23, ["product over direct-sum"]),
        ("product over direct-sum", 14, ["product over", "direct-sum"]),
        ("valid/perplexity", 12, ["valid/", "perplexity"]),
        ("translation / exponential", 13, ["translation /", "exponential"]),
        ("failed 1/3", 6, ["failed", "1/3"]),
        ("Tsai et al. (2019), Eq. 9", 24, ["Tsai et al. (2019),", "Eq. 9"]),
        ("perplexity ↓", 12, ["perplexity ↓"]),
        ("without-position", 9, ["without-", "position"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("", 3, [""]),
    ],
)
def test_a_text_is_folded_where_a_reader_expects_it(text: str, width: int, lines: list[str]) -> None:
    assert fold(text, width, len) == lines


@given(texts, st.integers(1, 40))
def test_folding_loses_nothing_and_breaks_only_what_is_too_wide(parts: list[str], width: int) -> None:
    text = " ".join(parts)
    lines = fold(text, width, len)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert max(map(len, lines)) <= width
    if of(text).word <= width:
        assert " ".join(lines).split() == text.split()


@given(st.lists(texts.map(" ".join), min_size=1, max_size=4))
def test_a_column_is_as_narrow_as_its_number_of_lines_allows(cells: list[str]) -> None:
    found = of(*cells)
    assert list(found.lines) == sorted(found.lines, reverse=True)
    assert found.lines[-1] >= found.word
    for lines, width in enumerate(found.lines, 1):
        assert max(len(fold(cell, width, len)) for cell in cells) <= lines


@given(st.lists(st.tuples(texts.map(" ".join), words), min_size=1, max_size=9), st.integers(0, 3), st.integers(10, 130))
@example([("/", "a"), ("a", "a"), ("a", "a"), ("", "aa")], 3, 10)
def test_every_column_stands_in_one_piece_within_the_width(its: list[tuple[str, str]], names: int, width: int) -> None:
    names = min(names, len(its))
    columns = [of(folded, whole=(whole,) if at >= names else ()) for at, (folded, whole) in enumerate(its)]
    pieces = fit(columns, names, width, 2)
    assert [index for piece in pieces for index in piece.columns] == list(range(len(its) - names))
    for piece in pieces:
        shown = [*columns[:names], *(columns[names + index] for index in piece.columns)]
        assert len(piece.widths) == len(shown)
        room = width - 2 * (len(shown) - 1)
        # No column is narrower than one character.
        if sum(max(one.whole, 1.0, room / (2 * len(shown))) for one in shown) < room:
            assert sum(piece.widths) <= room
        assert all(got >= one.whole for got, one in zip(piece.widths, shown, strict=True))
        if sum(one.word for one in shown) <= room:
            assert all(got >= one.word for got, one in zip(piece.widths, shown, strict=True))


def test_what_fits_is_not_folded_and_what_is_left_unfolds_what_it_can() -> None:
    sides = [of("product symmetric over direct-sum asymmetric"), of("no worse than 0.2")]
    numbers = [of("difference", whole=("+6.09",)), of("n", whole=("3",)), of("verdict", "does not hold")]
    (piece,) = fit([*sides, *numbers], 2, 120, 2)
    assert piece.widths == (44, 17, 10, 1, 13)
    (piece,) = fit([*sides, *numbers], 2, 80, 2)
    assert piece.widths[1:] == (17, 10, 1, 13)


def test_columns_go_on_below_before_a_word_is_broken() -> None:
    names = [of("exponential"), of("translation")]
    numbers = [of("mean", whole=("22.70",)), of("95% interval", whole=("19.75 to 25.65",))]
    assert [piece.columns for piece in fit([*names, *numbers], 2, 42, 2)] == [range(1), range(1, 2)]


@pytest.mark.parametrize("text", ["3", "−2.99 to 15.17", "< 0.001", "1/5 (4% to 60%)", "±0.53", "2.50e+06"])
def test_numbers_stay_whole_unless_they_are_names(text: str) -> None:
    assert of_listing("n", [text], len, names=False).whole == len(text)
    assert of_listing("n", [text], len, names=True).whole == 0


@pytest.mark.parametrize("text", ["cannot tell", "–", "", "none in sight", "±", "100% & more", "3 words"])
def test_words_do_not(text: str) -> None:
    assert of_listing("n", [text], len, names=False).whole == 0


def test_a_column_of_words_alone_is_told_from_one_of_numbers() -> None:
    assert are_words(["holds", "cannot tell", ""])
    assert not are_words(["7", "", "none in sight"])
    assert not are_words(["–", ""])

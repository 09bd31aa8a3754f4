"""What writers share: the formats, columns within a width, and settings."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kdx.report.sheet import Sheet
from kdx.report.writers.settings import as_yaml
from kdx.report.writers.text import fit

words = st.text("abcdefgh", min_size=1, max_size=12)
texts = st.lists(st.one_of(words, st.just("/"), st.from_regex(r"[0-9]{1,3}", fullmatch=True)), max_size=8).map(" ".join)


def listing(*columns: tuple[str, ...], names: int) -> Sheet:
    headers, *rows = zip(*columns, strict=True)
    return Sheet("", (), headers, names, tuple(rows), ())


@given(st.lists(st.tuples(texts, words), min_size=1, max_size=9), st.integers(0, 3), st.integers(10, 130))
def test_every_column_stands_in_one_piece_within_the_width(columns: list[tuple[str, str]], names: int, width: int):
    names = min(names, len(columns))
    pieces = fit(listing(*columns, names=names), width)
    assert [at for piece in pieces for at in [*piece][names:]] == list(range(names, len(columns)))
    for piece in pieces:
        assert [*piece][:names] == [*range(names)] and min(piece.values(), default=1) >= 1
        # No column is narrower than one character.
        if 3 * len(piece) + 30 <= width:
            assert sum(piece.values()) + 2 * (len(piece) - 1) <= width


def test_what_fits_is_not_folded_and_what_is_left_unfolds_what_it_can() -> None:
    sides = ("a over b", "product symmetric over direct-sum asymmetric"), ("expected", "no worse than 0.2")
    numbers = ("difference", "+0.1"), ("n", "3"), ("interval", "−2.99 to 15.17")
    sheet = listing(*sides, *numbers, names=2)
    (piece,) = fit(sheet, 120)
    assert [*piece.values()] == [44, 17, 10, 1, 14]
    (piece,) = fit(sheet, 80)
    assert [*piece.values()][1:] == [17, 10, 1, 14] and sum(piece.values()) == 72


def test_columns_go_on_below_before_a_word_or_a_number_is_broken() -> None:
    names = ("kernel", "exponential"), ("task", "translation")
    numbers = ("mean", "22.70"), ("95% interval", "19.75 to 25.65")
    pieces = fit(listing(*names, *numbers, names=2), 42)
    assert [[*piece] for piece in pieces] == [[0, 1, 2], [0, 1, 3]]
    assert [*pieces[1].values()] == [11, 11, 14]


@pytest.mark.parametrize("text", ["3", "−2.99 to 15.17", "< 0.001", "1/5 (4% to 60%)", "±0.53", "2.50e+06"])
def test_numbers_stay_whole_unless_they_are_names(text: str) -> None:
    assert fit(listing(("a", "b"), ("n", text), names=1), 14)[0][1] >= min(len(text), 11)
    assert not listing(("a", text), names=0).is_of_words(0)


def test_a_column_of_words_alone_is_told_from_one_of_numbers() -> None:
    assert listing(("a", "holds", "cannot tell", ""), names=0).is_of_words(0)
    assert not listing(("a", "7", "", "none in sight"), names=0).is_of_words(0)
    assert not listing(("a", "–", ""), names=0).is_of_words(0)
    assert listing(("a", "7"), names=1).is_of_words(0)


def test_each_setting_has_a_line_and_the_order_stays():
    settings = {"kernel": "rbf", "data": {"corpus": "copy", "length": 4}, "position": []}
    text = as_yaml(settings)
    assert text.splitlines() == ["kernel: rbf", "data: {corpus: copy, length: 4}", "position: []"]
    assert yaml.safe_load(text) == settings

"""The terminal's figure can be read without colours, keeps within its width, and says what its signs mean."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from kdx.report.figures.series import Series
from kdx.report.figures.text import TextBands
from kdx.report.statistics.metric import Metric
from kdx.vocabulary import Direction

PERPLEXITY = Metric("perplexity", Direction.MIN)
TWO = [
    Series("No position", ((32.0, 5.25, 5.2, 5.6), (64.0, 6.0, 5.5, 6.0), (128.0, 5.8, 5.8, 5.8))),
    Series("Tsai et al. (2019), Eq. 9", ((32.0, 5.0, 5.0, 5.2),)),
]


def drawn(series: list[Series], width: int = 60, metric: Metric = PERPLEXITY) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(TextBands("lengths", metric, series))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def test_each_length_has_its_band_and_its_number_on_one_axis() -> None:
    assert (
        drawn(TWO)
        == """\
lengths: perplexity ↓ against the length
                          length
No position                   32 │      ├●───────┤
                              64 │             ├───────────●
                             128 │                    ●
Tsai et al. (2019), Eq. 9     32 │ ●────┤
                                 └──────────────────────────
                                   5.00                 6.00
Length: tokens of a stream in one segment. ●: the number in
the table; ├─┤: from the lowest to the highest of all seeds."""
    )


def test_a_narrow_console_folds_the_names_and_keeps_every_point() -> None:
    text = drawn(TWO, 30)
    assert max(map(cell_len, text.splitlines())) <= 30
    assert [line for line in text.splitlines() if "│" in line] == [
        "No             32 │   ●──┤",
        "position       64 │     ├────●",
        "              128 │        ●",
        "Tsai et        32 │ ●─┤",
        "al.               │",
        "(2019),           │",
        "Eq. 9             │",
    ]


def test_a_wide_console_leaves_the_figure_as_it_is() -> None:
    assert drawn(TWO, 80) == drawn(TWO, 200)


def test_single_seeds_have_no_band_and_no_word_of_one() -> None:
    text = drawn([Series("", ((32.0, 5.0, 5.0, 5.0), (64.0, 6.0, 6.0, 6.0)))])
    assert "├" not in text and "seeds" not in text


def test_equal_scores_have_one_end_of_the_axis() -> None:
    assert drawn([Series("", ((32.0, 5.0, 5.0, 5.0), (64.0, 5.0, 5.0, 5.0)))]).count("5.00") == 1


def test_a_logarithmic_axis_is_called_so() -> None:
    wide = [Series("a", ((32.0, 5.0, 5.0, 5.0), (64.0, 5e4, 5e4, 5e4), (128.0, 500.0, 500.0, 500.0)))]
    text = drawn(wide)
    assert "The axis is logarithmic." in text and "logarithmic" not in drawn(TWO)
    first, last, middle = (line.index("●") for line in text.splitlines() if "│" in line and "●" in line)
    assert abs(middle - (first + last) / 2) <= 1


def test_a_name_cannot_write_to_the_terminal() -> None:
    assert "\x1b" not in drawn([Series("\x1b[2J", TWO[0].points)])


@given(
    st.lists(st.tuples(st.text(max_size=50), st.integers(1, 4)), min_size=1, max_size=4),
    st.integers(20, 120),
    st.data(),
)
def test_whatever_is_drawn_fits(groups, width, data) -> None:
    scores = st.tuples(*[st.floats(1e-3, 1e9)] * 3).map(sorted)
    series = [
        Series(name, tuple((2.0**at, mid, low, high) for at in range(count) for low, mid, high in [data.draw(scores)]))
        for name, count in groups
    ]
    text = drawn(series, width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert text.count("│") >= sum(count for _, count in groups)


@pytest.mark.parametrize("metric", [Metric("bleu", Direction.MAX), Metric("valid/loss", Direction.MIN)])
def test_the_title_has_the_metric(metric) -> None:
    assert drawn(TWO, metric=metric).startswith(f"lengths: {metric} against the length\n")

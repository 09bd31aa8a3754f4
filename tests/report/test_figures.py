"""Plots: their axes and points, on the terminal without colour and within its width, and as a file."""

import math
import re
from array import array
from collections.abc import Sequence
from io import BytesIO, TextIOWrapper
from math import inf, nan
from string import ascii_lowercase
from types import SimpleNamespace
from typing import Any

import pytest
import trials
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from sweeps import metric_of

from kdx.grid.table_layout import Address
from kdx.report.figures.charts import FORMATS, figure
from kdx.report.figures.plot import NamedCurve, Plot, Point, Series, curves_plot, is_logarithmic, scale, share, ticks
from kdx.report.figures.series import LENGTH, over_length, over_parameters
from kdx.report.figures.text import MOST_SERIES, TextPlot
from kdx.report.statistics.metric import Metric
from kdx.report.table.layout import Layout
from kdx.report.tables import Table
from kdx.store.records import CurveRecord
from kdx.vocabulary import Direction

# Axes


def test_only_finite_values_make_an_axis() -> None:
    assert scale([3.0, nan, 1.0, inf]) == (1.0, 3.0)
    assert scale([nan]) is scale([]) is None
    assert Plot("", "x", "y", (Series("a", ()),)).spanned() is None


@pytest.mark.parametrize(
    ("span", "logarithmic"),
    [((1.0, 1000.0), False), ((1.0, 1001.0), True), ((0.0, 1e9), False), ((-5.0, 1e9), False), ((2.0, 2.0), False)],
)
def test_an_axis_over_three_decades_is_logarithmic(span, logarithmic) -> None:
    assert is_logarithmic(span) is logarithmic


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_every_value_of_an_axis_is_on_it(values) -> None:
    span = scale(values)
    assert span
    assert all(0.0 <= share(value, span, logarithmic=is_logarithmic(span)) <= 1.0 for value in values)
    assert share(span[0], span, logarithmic=False) == 0.0
    assert share(10.0, (1.0, 1e4), logarithmic=True) == 0.25 and share(12.5, (10.0, 20.0), logarithmic=False) == 0.25


# Scores against a length or a parameter

PERPLEXITY, LOSS = metric_of("perplexity"), metric_of("loss")


def cell(mean: float | None, *scores: float | None, metric: Metric = PERPLEXITY) -> Any:
    """What is read of a cell, by its mean."""
    summary = None if mean is None else SimpleNamespace(mean=mean)
    return SimpleNamespace(summary=summary, metric=metric, seeds=[SimpleNamespace(score=score) for score in scores])


def table(places: dict[Address, Any], factor: str = LENGTH) -> Table:
    """Kernels, whose last is `none`, in the rows and lengths from the longest in the columns."""
    return Table(
        Layout(
            name="t",
            caption="",
            shown=None,  # type: ignore[arg-type]
            row_factors=("kernel",),
            column_factors=(factor,),
            rows=(("rbf",), ("none",)),
            columns=(("256",), ("128",), ("None",)),
            metrics=(PERPLEXITY,) * 3,
            places=places,
            records={},
        )
    )


def test_points_go_from_the_lowest_length_and_have_the_mean_of_the_table_within_its_seeds() -> None:
    places = {(0, 0): cell(6.0, 6.0, 6.5, None), (0, 1): cell(7.5, 7.0, 7.5), (1, 1): cell(8.0, 8.0)}
    (plot,) = over_length(table(places))
    assert plot.title == "t: mean perplexity ↓ against the length"
    assert plot.series == (
        Series("rbf", (Point(128.0, 7.5, 7.0, 7.5), Point(256.0, 6.0, 6.0, 6.5))),
        Series("kernel none", (Point(128.0, 8.0, 8.0, 8.0),)),
    )


def test_without_two_lengths_of_a_group_with_numbers_there_is_no_plot() -> None:
    places = {(0, 0): cell(6.0, 6.0), (0, 1): cell(7.0, 7.0)}
    assert [*over_length(table(places))] and not [*over_length(table(places, factor="evaluation.beam"))]
    assert not [*over_length(table({(0, 0): cell(6.0, 6.0), (1, 1): cell(7.0, 7.0)}))]
    for other in (cell(None, 5.0), cell(inf, 5.0), cell(5.0, 5.0, nan)):
        assert not [*over_length(table(places | {(0, 1): other}))]
    of_loss = {(1, column): cell(2.0, 2.0, metric=LOSS) for column in range(2)}
    assert [[series.name for series in plot.series] for plot in over_length(table(places | of_loss))] == [
        ["rbf"],
        ["kernel none"],
    ]


def test_a_range_keeps_its_ends_and_scale_and_a_list_its_words() -> None:
    rate, dropout = over_parameters(trials.table(trials.search("rbf")).searches[0, 0])
    assert (rate.x, rate.ticks, rate.x_span, rate.logarithmic) == (trials.RATE, (), (1e-4, 1e-2), True)
    assert rate.dots == ((9.5e-3, 20.0),) and len(rate.series[0].points) == 3
    assert (dropout.ticks, dropout.x_span, dropout.logarithmic) == (("0", "0.1", "0.3"), (0.0, 2.0), False)
    assert [point.x for point in dropout.series[0].points] == [0.0, 1.0, 2.0]


# On the terminal


def curve(name: str, points: dict[int, float]) -> NamedCurve:
    return name, CurveRecord(array("q", points), array("d", points.values()))


def drawn(plot: Plot, width: int = 80, names: Sequence[str] = (), encoding: str = "utf-8") -> list[str]:
    console = Console(width=width, color_system=None, file=TextIOWrapper(BytesIO(), encoding))
    with console.capture() as captured:
        console.print(TextPlot(plot, names))
    return captured.get().splitlines()


def drawn_curves(*curves: NamedCurve, width: int = 80, direction: Direction | None = None) -> list[str]:
    return drawn(curves_plot("valid/loss", curves, direction=direction), width)


def body(lines: list[str]) -> list[str]:
    """The rows of a plot, right of its vertical axis."""
    return [re.split("[│┤]", line)[1] for line in lines if re.match("[^│┤]*[│┤]", line)]


def test_a_curve_goes_from_corner_to_corner_with_its_numbers_below():
    lines = drawn_curves(curve("run 7", {0: 4.0, 500: 3.0, 1000: 2.0}))
    assert lines[0] == "valid/loss"
    rows = body(lines)
    assert len(rows) == 12 and not any(row.isspace() or not row for row in rows)
    assert rows[0].startswith("⠛") and rows[-1].endswith("⣤") and len(rows[-1]) > 70
    assert lines[1].startswith("  4 ┤") and lines[12].startswith("  2 ┤")
    assert [line.split() for line in lines[14:17]] == [["0", "500", "1,000"], ["step"], ["last", "lowest", "highest"]]
    assert lines[17:] == ["━ run 7  2.000  2.000 at 1,000  4.000 at 0"]


def test_a_line_joins_points_and_the_points_of_a_short_curve_stand_out():
    few, many = ({at: (at - 9.0) ** 2 for at in range(0, 19, step)} for step in (9, 1))
    rows = "".join(body(drawn_curves(curve("a", few))))
    assert sum(map(rows.count, "⠛⣤⡟⢻⣧⣼")) == 3
    for points in (few, many):
        rows = [row.ljust(75) for row in body(drawn_curves(curve("a", points)))]
        assert all(any(not row[at].isspace() for row in rows) for at in range(75)), "no gap"


def test_several_curves_have_letters_at_both_ends_and_the_best_last_value_comes_first():
    curves = [curve("one", {0: 1.0, 10: 2.0}), curve("two", {0: 1.0, 10: 3.0}), curve("three", {0: 3.0, 5: 2.5})]
    lines = drawn_curves(*curves, direction=Direction.MAX)
    rows = body(lines)
    assert rows[-1].startswith("●●ab") or rows[-1].startswith("ab")
    assert rows[0].startswith("●c") and rows[0].endswith("●b") and rows[6].endswith("●a")
    assert sum(map(len, (re.findall("[abc]", row) for row in rows))) == 6
    assert [line.split()[:4] for line in lines[-4:]] == [
        ["●", "the", "best", "last"],
        ["b", "━", "two", "3.000"],
        ["c", "━", "three", "2.500"],
        ["a", "━", "one", "2.000"],
    ]
    assert lines[-2].endswith("  3.000 at 0")
    lowest = drawn_curves(*curves, direction=Direction.MIN)
    assert [line[0] for line in lowest[-3:]] == ["a", "c", "b"] and lowest[-2].endswith("2.500 at 5")
    assert [line[0] for line in drawn_curves(*curves)[-3:]] == ["a", "b", "c"]


def test_figures_that_share_names_share_letters_and_colours():
    alone = curves_plot("valid/loss", [curve("two", {0: 1.0, 10: 3.0})])
    lines = drawn(alone, names=["one", "two"])
    assert body(lines)[-1].startswith("b") and lines[-1].startswith("b ━ two")


def test_each_curve_has_its_colour_and_nothing_is_said_by_colour_alone():
    plot = curves_plot("valid/loss", [curve(f"run {at}", {0: float(at), 1: 2.0 * at}) for at in range(7)])
    coloured = Console(width=80, force_terminal=True, color_system="truecolor", _environ={})
    with coloured.capture() as captured:
        coloured.print(TextPlot(plot))
    *lines, rest = captured.get().split("\n")
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
    assert plain == drawn(plot) and not rest
    legend = [re.match(r"\x1b\[([\d;]+)m(\w) ━", line) for line in lines[-7:]]
    assert len({match[1] for match in legend if match}) == 7
    for match in filter(None, legend):
        assert any(f"\x1b[{match[1]}m{match[2]}\x1b[0m" in line for line in lines[:13]), "its ends too"


def test_what_is_not_finite_is_said_and_not_drawn():
    lines = drawn_curves(curve("one", {1: 2.0, 2: math.nan, 1000: math.inf}))
    assert lines[-2].endswith("not finite") and lines[-1].endswith("2 steps from 2")
    assert "".join(body(lines)).strip() == "⣤"
    nothing = drawn_curves(curve("one", {5: math.nan}))
    assert nothing == ["valid/loss", "          not finite", "━ one  1 step from 5"]


def test_an_axis_over_decades_is_logarithmic_and_says_so():
    lines = drawn_curves(curve("one", {0: 1.0, 1: 1e3, 2: 1e6}))
    assert lines[0] == "valid/loss (logarithmic)"
    ticks = {line.split(" ┤")[0].strip(): row for row, line in enumerate(lines[1:13]) if "┤" in line}
    assert ticks["1"] == 11 and ticks["1,000,000"] == 0 and ticks["1,000"] in (5, 6)


@pytest.mark.parametrize("value", [0.0, -3.0, 1e308, 5e-324])
def test_a_single_value_stands_at_the_foot(value):
    for points in ({3: value}, {3: value, 7: value}):
        rows = body(drawn_curves(curve("one", points)))
        assert rows[-1].startswith("⣤") and not any(row.strip() for row in rows[:-1])


NAMES = ["run", "注意力机制与位置编码的比较", "e\u0301" * 40, "🙂 approach", "Vaswani et al. (2017), Eq. 4"]


@given(
    st.lists(
        st.dictionaries(st.integers(0, 2**40), st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=30),
        min_size=1,
        max_size=MOST_SERIES,
    ),
    st.integers(1, 120),
    st.sampled_from([None, *Direction]),
)
@example([{0: 1.0, 9: 1.0}] * MOST_SERIES, 80, None)
def test_every_curve_has_its_line_and_no_line_is_too_wide(curves, width, direction):
    named = [curve(f"{number} {NAMES[number % len(NAMES)]}", points) for number, points in enumerate(curves)]
    plot = curves_plot("valid/loss", named, direction=direction)
    lines = drawn(plot, width)
    assert max(map(cell_len, lines)) <= width
    letters = [line[0] for line in lines[-len(curves) :]]
    assert sorted(letters) == ([*ascii_lowercase[: len(curves)]] if len(curves) > 1 else ["━"])
    if width >= 40:
        finite = sum(any(map(math.isfinite, points.values())) for points in curves)
        assert bool(body(lines)) is (finite > 0)


def test_a_name_that_is_too_long_is_shortened_in_the_middle():
    names = [f"run {at} · {'attention ' * 9}· seed {at}" for at in range(2)]
    lines = drawn_curves(*(curve(name, {0: 1.0, 9: 2.0}) for name in names))
    for at, line in enumerate(lines[-2:]):
        assert re.fullmatch(
            rf". ━ run {at} · [a-z ]*…[a-z ]*attention · seed {at}  2.000  1.000 at 0  2.000 at 9", line
        )
        assert len(line) == 80


def test_more_series_than_letters_are_drawn_without():
    plot = Plot("t", "x", "y", tuple(Series(f"s{at}", (Point(0.0, 1.0, 1.0, 1.0),)) for at in range(MOST_SERIES + 1)))
    assert drawn(plot)[-2:] == ["z ━ s25", "  ━ s26"]


def test_a_console_without_braille_shows_the_same_in_ascii():
    plot = curves_plot("valid/loss", [curve("one", {0: 4.0, 9: 2.0}), curve("two", {0: 4.0, 9: 1.0, 10: math.nan})])
    plain, braille = drawn(plot, encoding="ascii"), drawn(plot)
    assert all(map(str.isascii, plain)) and len(plain) == len(braille)
    assert [sign in "".join(plain) for sign in "|+.:'=ab"] == [True] * 8


@given(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2).map(sorted), st.integers(3, 6), st.booleans())
def test_ticks_are_a_few_round_values_within_the_range(ends, number, whole):
    span = (ends[0], ends[1])
    few = ticks(span, number, logarithmic=is_logarithmic(span), least=float(whole))
    assert 1 <= len(few) <= 2 * number and few == sorted(few)
    slack = 1e-6 * max(map(abs, ends))
    assert all(ends[0] - slack <= tick <= ends[1] + slack for tick in few)


@pytest.mark.parametrize(
    ("span", "values"),
    [
        ((12.16, 31.18), [15, 20, 25, 30]),
        ((2.23, 8.88), [3, 4, 5, 6, 7, 8]),
        ((0.1, 0.5), [0.1, 0.2, 0.3, 0.4, 0.5]),
        ((3.0, 3.0), [3]),
        ((0.5, 2e6), [1, 10, 100, 1000, 1e4, 1e5, 1e6]),
    ],
)
def test_ticks_of_an_axis(span, values):
    assert ticks(span, 5, logarithmic=is_logarithmic(span)) == pytest.approx(values)


def test_the_best_trial_stands_highest_and_where_its_parameter_is():
    rate, dropout = over_parameters(trials.table(trials.search("rbf")).searches[0, 0])
    lines = drawn(rate, width=60)
    rows = body(lines)
    assert lines[0] == "valid/bleu ↑ against training.learning_rate"
    assert rows[0].endswith("●") and 26 <= re.search("[⠛⣤]", rows[-1]).start() <= 29
    assert lines[14].split() == ["0.0001", "0.001", "0.01"]
    assert [line.strip() for line in lines[15:]] == [
        "training.learning_rate (logarithmic)",
        "● the best",
        "⠶ a trial",
    ]
    lines = drawn(dropout)
    assert lines[14].split() == ["0", "0.1", "0.3"] and body(lines)[0].startswith("●")


def test_a_name_acts_on_no_terminal():
    assert "\x1b" not in "".join(drawn_curves(curve("\x1b[2Jone", {0: 1.0})))


# In a file


CURVES = [
    curves_plot("train/loss", [curve("run 1", {0: 3.0, 1: 2.0}), curve("run 2", {0: 4.0, 1: math.nan, 2: 1.0})]),
    curves_plot("valid/bleu", [curve("run 1", {0: 30.0})]),
]


@pytest.mark.parametrize(("suffix", "start"), [*zip(FORMATS, (b"<svg", b"\x89PNG\r\n", b"%PDF-"), strict=True)])
def test_each_format_is_what_it_is_called(suffix, start):
    assert figure(CURVES, suffix).startswith(start)


def test_the_svg_names_metrics_and_curves_and_draws_each():
    svg = figure(CURVES, ".svg").decode()
    assert all(f">{word}<" in svg for word in ("train/loss", "valid/bleu", "run 1", "run 2", "step"))
    assert svg.count('aria-roledescription="line mark"') == 3


def test_a_name_is_no_markup():
    named = Plot(
        "<script>", "x", "y", (Series("<script>alert(1)</script>", (Point(1.0, 1.0, 0.5, 2.0),)), Series("b", ()))
    )
    assert "<script" not in figure([named], ".svg").decode()

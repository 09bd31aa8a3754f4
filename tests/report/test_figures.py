"""Plots: their axes and points, on the terminal without colour and within its width, and as a file."""

import math
from array import array
from math import inf, nan
from types import SimpleNamespace
from typing import Any

import pytest
import trials
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sweeps import metric_of

from kdx.grid.table_layout import Address
from kdx.report.figures.plot import NamedCurve, Plot, Point, Series, curves_plot, is_logarithmic, scale, share
from kdx.report.figures.series import LENGTH, over_length, over_parameters
from kdx.report.figures.text import MOST_SERIES, TextPlot
from kdx.report.figures.vega import FORMATS, figure
from kdx.report.statistics.metric import Metric
from kdx.report.table.layout import Layout
from kdx.report.table.table import Table
from kdx.store.records import CurveRecord

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


def cell(value: float | None, *scores: float | None, metric: Metric = PERPLEXITY) -> Any:
    """What is read of a cell."""
    return SimpleNamespace(value=value, metric=metric, seeds=[SimpleNamespace(score=score) for score in scores])


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


def test_points_go_from_the_lowest_length_and_have_the_number_of_the_table_within_its_seeds() -> None:
    places = {(0, 0): cell(6.0, 6.0, 6.5, None), (0, 1): cell(7.5, 7.0, 7.5), (1, 1): cell(8.0, 8.0)}
    (plot,) = over_length(table(places))
    assert plot.title == "t: perplexity ↓ against the length"
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


def drawn(plot: Plot, width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(TextPlot(plot))
    return captured.get().splitlines()


def drawn_curves(*curves: NamedCurve, width: int = 80) -> list[str]:
    return drawn(curves_plot("valid/loss", curves), width)


def body(lines: list[str]) -> list[str]:
    return [line.partition("│")[2] for line in lines if "│" in line]


def test_a_curve_goes_from_corner_to_corner_with_its_numbers_below():
    lines = drawn_curves(curve("run 7", {0: 4.0, 500: 3.0, 1000: 2.0}))
    assert lines[0] == "valid/loss"
    rows = body(lines)
    assert rows[0].startswith("●") and rows[-1].rstrip().endswith("●") and len(rows[-1].rstrip()) > 70
    assert lines[1].startswith("4 │") and lines[16].startswith("2 │")
    assert lines[18].split() == ["0", "step", "1,000"]
    assert lines[19] == "●  run 7: last 2 at step 1,000, lowest 2 at 1,000, highest 4 at 0"
    assert len(lines) == 20


def test_several_curves_have_letters_and_a_sign_where_they_meet():
    lines = drawn_curves(curve("one", {0: 1.0, 10: 2.0}), curve("two", {0: 1.0, 10: 3.0}))
    rows = body(lines)
    assert rows[-1].startswith("*") and rows[0].rstrip().endswith("b") and sum(row.count("a") for row in rows) == 1
    assert lines[-3].startswith("a  one: ") and lines[-2].startswith("b  two: ")
    assert lines[-1] == "* several."


def test_what_is_not_finite_is_said_and_not_drawn():
    lines = drawn_curves(curve("one", {1: 2.0, 2: math.nan, 3: math.inf}))
    assert "not finite at 2 steps, the first 2" in lines[-1] and sum(row.count("●") for row in body(lines)) == 1
    assert drawn_curves(curve("one", {5: math.nan}))[1:] == ["●  one: not finite at 1 step, the first 5"]


def test_an_axis_over_decades_is_logarithmic_and_says_so():
    lines = drawn_curves(curve("one", {0: 1.0, 1: 1e3, 2: 1e6}))
    assert lines[-1] == "The axis of values is logarithmic."
    assert [number for number, row in enumerate(body(lines)) if "●" in row] in ([0, 7, 15], [0, 8, 15])


@pytest.mark.parametrize("value", [0.0, -3.0, 1e308, 5e-324])
def test_a_single_value_stands_at_the_foot(value):
    rows = body(drawn_curves(curve("one", {3: value})))
    assert rows[-1].startswith("●") and not any(row.strip() for row in rows[:-1])


@given(
    st.lists(
        st.dictionaries(st.integers(0, 2**40), st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=30),
        min_size=1,
        max_size=MOST_SERIES,
    ),
    st.integers(40, 120),
)
def test_every_curve_is_drawn_and_no_line_is_too_wide(curves, width):
    lines = drawn_curves(*(curve(f"run {number}", points) for number, points in enumerate(curves)), width=width)
    assert max(map(len, lines)) <= width
    for number in range(len(curves)):
        assert sum(f" run {number}:" in line for line in lines) == 1
    finite = sum(any(map(math.isfinite, points.values())) for points in curves)
    assert bool(body(lines)) is (finite > 0)


def test_the_best_trial_stands_highest_and_where_its_parameter_is():
    rate, dropout = over_parameters(trials.table(trials.search("rbf")).searches[0, 0])
    lines = drawn(rate, width=60)
    rows = body(lines)
    assert lines[0] == "valid/bleu ↑ against training.learning_rate"
    assert rows[0].rstrip().endswith("●") and 26 <= rows[-1].index("·") <= 29
    assert lines[18].split() == ["0.0001", "training.learning_rate", "0.01"]
    assert " ".join(lines[19:]) == "·  a trial ● the best; the axis of training.learning_rate is logarithmic."
    lines = drawn(dropout)
    assert lines[18].split() == ["0", "0.1", "0.3"] and body(lines)[0].startswith("●")


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

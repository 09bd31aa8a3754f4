"""A plot on the terminal is legible without colour and within its width."""

import math
from array import array

import pytest
import trials
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kdx.report.figures.plot import NamedCurve, Plot, curves_plot
from kdx.report.figures.series import over_parameters
from kdx.report.figures.text import MOST_SERIES, TextPlot
from kdx.store.records import CurveRecord


def curve(name: str, points: dict[int, float]) -> NamedCurve:
    return NamedCurve(name, CurveRecord(array("q", points), array("d", points.values())))


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

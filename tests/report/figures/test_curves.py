"""Curves on the terminal are legible at 80 columns and without colour."""

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kdx.report.figures.curves import MOST_CURVES, NamedCurve, TextCurves
from kdx.store.records import CurveRecord


def curve(name: str, points: dict[int, float]) -> NamedCurve:
    return NamedCurve(name, CurveRecord(array("q", points), array("d", points.values())))


def drawn(*curves: NamedCurve, width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(TextCurves("valid/loss", curves))
    return captured.get().splitlines()


def plot(lines: list[str]) -> list[str]:
    return [line.partition("│")[2] for line in lines if "│" in line]


def test_a_curve_goes_from_corner_to_corner_with_its_numbers_below():
    lines = drawn(curve("run 7", {0: 4.0, 500: 3.0, 1000: 2.0}))
    assert lines[0] == "valid/loss"
    rows = plot(lines)
    assert rows[0].startswith("●") and rows[-1].rstrip().endswith("●") and len(rows[-1].rstrip()) > 70
    assert lines[1].startswith("4 │") and lines[16].startswith("2 │")
    assert lines[18].split() == ["0", "step", "1,000"]
    assert lines[19] == "●  run 7: last 2 at step 1,000, lowest 2 at 1,000, highest 4 at 0"
    assert len(lines) == 20


def test_several_curves_have_letters_and_a_sign_where_they_meet():
    lines = drawn(curve("one", {0: 1.0, 10: 2.0}), curve("two", {0: 1.0, 10: 3.0}))
    rows = plot(lines)
    assert rows[-1].startswith("*") and rows[0].rstrip().endswith("b") and sum(row.count("a") for row in rows) == 1
    assert lines[-3].startswith("a  one: ") and lines[-2].startswith("b  two: ")
    assert lines[-1] == "* several curves."


def test_many_steps_in_a_column_stand_at_their_mean_and_this_is_said():
    lines = drawn(curve("one", {step: float(step % 2) for step in range(2000)}))
    assert lines[-1] == "A sign stands at the mean of the steps in its column."
    assert {number for number, row in enumerate(plot(lines)) if "●" in row} <= {7, 8}  # the middle


def test_what_is_not_finite_is_said_and_not_drawn():
    lines = drawn(curve("one", {1: 2.0, 2: math.nan, 3: math.inf}))
    assert "not finite at 2 steps, the first 2" in lines[-1] and sum(row.count("●") for row in plot(lines)) == 1
    assert drawn(curve("one", {5: math.nan}))[1:] == ["●  one: not finite at 1 step, the first 5"]


def test_an_axis_over_decades_is_logarithmic_and_says_so():
    lines = drawn(curve("one", {0: 1.0, 1: 1e3, 2: 1e6}))
    assert lines[-1] == "The axis of values is logarithmic."
    assert [number for number, row in enumerate(plot(lines)) if "●" in row] in ([0, 7, 15], [0, 8, 15])


def test_a_name_acts_on_no_terminal():
    assert "\x1b" not in "".join(drawn(curve("\x1b[2Jone", {0: 1.0})))


values = st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.dictionaries(st.integers(0, 2**40), values, min_size=1, max_size=30), min_size=1, max_size=MOST_CURVES),
    st.integers(40, 120),
)
def test_every_curve_is_drawn_and_no_line_is_too_wide(curves, width):
    lines = drawn(*(curve(f"run {number}", points) for number, points in enumerate(curves)), width=width)
    assert max(map(len, lines)) <= width
    for number in range(len(curves)):
        assert sum(f" run {number}:" in line for line in lines) == 1
    finite = sum(any(map(math.isfinite, points.values())) for points in curves)
    assert bool(plot(lines)) is (finite > 0)


@pytest.mark.parametrize("value", [0.0, -3.0, 1e308, 5e-324])
def test_a_single_value_stands_at_the_foot(value):
    rows = plot(drawn(curve("one", {3: value})))
    assert rows[-1].startswith("●") and not any(row.strip() for row in rows[:-1])

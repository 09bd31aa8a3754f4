"""The axis of a figure spans its finite values, and is logarithmic where they span more than three decades."""

import math
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.report.figures.scale import is_logarithmic, scale, share

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def test_only_finite_values_make_an_axis() -> None:
    assert scale([3.0, nan, 1.0, math.inf]) == (1.0, 3.0)
    assert scale([nan]) is scale([]) is None


@pytest.mark.parametrize(
    ("span", "logarithmic"),
    [((1.0, 1000.0), False), ((1.0, 1001.0), True), ((0.0, 1e9), False), ((-5.0, 1e9), False), ((2.0, 2.0), False)],
)
def test_an_axis_over_three_decades_is_logarithmic(span, logarithmic) -> None:
    assert is_logarithmic(span) is logarithmic


def test_a_value_has_its_share_of_the_axis() -> None:
    assert [share(value, (10.0, 20.0)) for value in (10.0, 12.5, 20.0)] == [0.0, 0.25, 1.0]
    assert [share(value, (1.0, 1e4)) for value in (1.0, 10.0, 1e4)] == [0.0, 0.25, 1.0]
    assert share(7.0, (7.0, 7.0)) == 0.0


@given(st.lists(FINITE, min_size=1, max_size=5))
def test_every_value_of_an_axis_is_on_it(values) -> None:
    span = scale(values)
    assert span
    assert all(0.0 <= share(value, span) <= 1.0 for value in values)
    assert share(span[0], span) == 0.0

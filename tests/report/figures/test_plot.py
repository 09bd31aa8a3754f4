"""A plot spans its finite values."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.report.figures.plot import Plot, Series, is_logarithmic, scale, share


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

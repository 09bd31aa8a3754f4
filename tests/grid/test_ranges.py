"""Numbers by their ends are those that one would write out, and a range that cannot be is refused."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kdx.grid.model import Range, is_range


def written(**values: Any) -> dict[str, Any]:
    return {key.rstrip("_"): value for key, value in values.items()}


def numbers(**values: Any) -> list[Any]:
    return Range.model_validate(written(**values)).numbers


def test_steps_are_those_of_decimals() -> None:
    assert numbers(from_=0.1, to=0.5, step=0.1) == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert numbers(from_=100, to=450, step=100) == [100, 200, 300, 400]


def test_a_linear_and_a_logarithmic_range_have_both_ends() -> None:
    assert numbers(from_=0.0, to=1.0, linear=5) == [0, 0.25, 0.5, 0.75, 1]
    assert numbers(from_=1e-4, to=1e-2, log=5) == [1e-4, 3.162e-4, 1e-3, 3.162e-3, 1e-2]
    assert numbers(from_=8, to=128, log=5) == [8, 16, 32, 64, 128]


def test_whole_numbers_stay_whole() -> None:
    assert all(isinstance(one, int) for one in numbers(from_=8, to=128, log=5))
    assert all(isinstance(one, float) for one in numbers(from_=1, to=2, step=0.5))


@given(
    first=st.floats(1e-6, 1e3),
    ratio=st.floats(1.01, 1e6),
    count=st.integers(2, 50),
    how=st.sampled_from(["linear", "log"]),
)
def test_a_range_rises_from_end_to_end(first: float, ratio: float, count: int, how: str) -> None:
    values = {"from_": first, "to": first * ratio, how: count}
    try:
        found = numbers(**values)
    except ValidationError as error:
        assert "not all different" in str(error)
        return
    assert (found[0], found[-1], len(found)) == (first, first * ratio, count)
    assert sorted(found) == found


@given(first=st.integers(-100, 100), count=st.integers(1, 50), step=st.decimals("0.001", 10, places=3))
def test_a_stepped_range_never_passes_its_end(first: int, count: int, step: Decimal) -> None:
    last = first + float(step) * count
    found = numbers(from_=first, to=last, step=float(step))
    assert found[0] == first and all(one <= last for one in found) and len(found) in (count, count + 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"from_": 3, "to": 1, "linear": 2}, "a range from 3 to 1"),
        ({"from_": 1, "to": 1, "linear": 2}, "a range from 1 to 1"),
        ({"from_": 0, "to": 1, "log": 3}, "a logarithmic range from 0"),
        ({"from_": 1, "to": 2, "linear": 5}, "5 whole numbers between 1 and 2 are not all different"),
        ({"from_": 1, "to": 2}, "without a spacing, or with several"),
        ({"from_": 1, "to": 2, "linear": 2, "log": 2}, "without a spacing, or with several"),
        ({"to": 2, "linear": 2}, "from\n  Field required"),
        ({"from_": "a", "to": 2, "linear": 2}, "a number"),
        ({"from_": True, "to": 2, "linear": 2}, "a number"),
        ({"from_": 1, "to": 2, "linear": 1}, "a whole number from 2 to 1,000"),
        ({"from_": 1, "to": 2, "step": 0}, "a number above 0"),
        ({"from_": 0, "to": 1, "step": 1e-9}, "1,000,000,001 numbers in a range"),
        ({"from_": 1, "to": 2, "steps": 5}, "steps\n  Extra inputs"),
    ],
)
def test_what_is_no_range_is_refused(values: dict[str, Any], message: str) -> None:
    assert is_range(written(**values))
    with pytest.raises(ValidationError) as refusal:
        numbers(**values)
    assert message in str(refusal.value)

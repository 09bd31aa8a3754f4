"""The model of a grid file: its keys, the names of sweeps and axes, and ranges of numbers."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from kdx.errors import Faults
from kdx.grid.cell_selector import factors, settings
from kdx.grid.load import load_grid
from kdx.grid.model import (
    GRID,
    LONGEST_NAME,
    MOST_AXES,
    PATTERN,
    SUB_GRID,
    Range,
    SubGrid,
    is_sweep_name,
    reserved_names,
)


def test_a_grid_has_the_keys_of_a_sub_grid_and_none_that_is_a_setting():
    assert set(SUB_GRID) < set(GRID) and len(set(GRID)) == len(GRID)
    assert not {*GRID} & {*settings()}


def test_a_name_with_another_meaning_is_no_axis_and_a_factor_may_be_one():
    assert {"seeds", "model", "approach"} <= set(reserved_names())
    assert not set(reserved_names()) & set(factors())
    SubGrid.model_validate({"axes": {"kernel": ["rbf"], "size": {"small": {}}}})
    with pytest.raises(ValidationError, match="`seeds` as the name of an axis"):
        SubGrid.model_validate({"axes": {"seeds": {"small": {}}}})


def test_more_axes_than_allowed_are_refused_with_their_number(tmp_path):
    axes = ", ".join(f"a{number}: {{x: {{}}}}" for number in range(MOST_AXES + 1))
    (tmp_path / "grid.yaml").write_text(f"task: translation\ndata: {{corpus: text}}\naxes: {{{axes}}}\n")
    with pytest.raises(Faults) as refusal:
        load_grid(tmp_path / "grid.yaml")
    (fault,) = refusal.value.faults
    assert (fault.problem, fault.allowed, fault.place.line) == ("101 items as axes", "at most 100", 3)


@pytest.mark.parametrize("name", ["a", "first look", "a=b", "1e3", "é", "a.yaml.old", "x" * LONGEST_NAME, "12 a", "٣"])
def test_a_name_may_be_any_line(name):
    assert is_sweep_name(name) and re.search(PATTERN, name)


@pytest.mark.parametrize(
    "name", ["", " ", " a", "a ", "-a", "--db", "12", "a.yaml", "a.yml", "x" * (LONGEST_NAME + 1), "a\nb", "a\u202eb"]
)
def test_no_name_is_taken_for_an_option_a_grid_or_a_run(name):
    assert not is_sweep_name(name)


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=12))
def test_the_schema_of_editors_allows_no_less(name):
    if is_sweep_name(name):
        assert re.search(PATTERN, name)


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
    assume(count > 1 or Decimal(repr(last)) - first >= step)  # a float may lie just below
    found = numbers(from_=first, to=last, step=float(step))
    assert found[0] == first and all(one <= last for one in found) and len(found) in (count, count + 1)

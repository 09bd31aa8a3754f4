"""The model of a grid file: the keys that it has, and which names of axes and changes have another meaning."""

import pytest
from pydantic import ValidationError

from kdx.errors import Faults
from kdx.grid.cell_selector import factors
from kdx.grid.field_types import descriptions
from kdx.grid.load import load_grid
from kdx.grid.model import GRID, MOST_AXES, SUB_GRID, GridFile, SubGrid, reserved_names
from kdx.grid.settings import settings


def test_a_grid_has_the_keys_of_a_sub_grid_and_none_that_is_a_setting():
    assert set(SUB_GRID) < set(GRID) and len(set(GRID)) == len(GRID)
    assert not {*GRID} & {*settings()}


def test_every_key_is_described():
    assert all(descriptions(GridFile)[key] for key in GRID)


def test_a_name_with_another_meaning_is_no_axis_and_a_factor_may_be_one():
    assert {"seeds", "model", "approach"} <= set(reserved_names())
    assert not set(reserved_names()) & set(factors())
    SubGrid.model_validate({"axes": {"kernel": ["rbf"], "size": {"small": {}}}})
    with pytest.raises(ValidationError, match="`seeds` as the name of an axis"):
        SubGrid.model_validate({"axes": {"seeds": {"small": {}}}})


def test_what_stands_alone_is_a_list_of_one():
    grid = SubGrid.model_validate({"exclude": {"kernel": "rbf"}, "zip": {"model.width": [8, 16]}})
    assert grid.exclude == [{"kernel": "rbf"}] and len(grid.zip) == 1


def test_more_axes_than_allowed_are_refused_with_their_number(tmp_path):
    axes = ", ".join(f"a{number}: {{x: {{}}}}" for number in range(MOST_AXES + 1))
    (tmp_path / "grid.yaml").write_text(f"task: translation\ndata: {{corpus: text}}\naxes: {{{axes}}}\n")
    with pytest.raises(Faults) as refusal:
        load_grid(tmp_path / "grid.yaml")
    (fault,) = refusal.value.faults
    assert (fault.problem, fault.allowed, fault.place.line) == ("101 items as axes", "at most 100", 3)

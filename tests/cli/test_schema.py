"""`kdx schema` writes what an editor needs."""

import json

import pytest
from jsonschema import Draft202012Validator
from looked_after import typed

from kdx.errors import Faults
from kdx.grid.schema import grid_schema
from kdx.grid.source import read


def schema(*arguments: str) -> dict:
    result = typed("schema", *map(str, arguments))
    assert result.exit_code == 0 and result.stderr == ""
    return json.loads(result.stdout)


def test_it_writes_the_schema_of_a_grid():
    assert schema() == grid_schema()


def test_a_part_of_a_grid_is_a_word_with_its_keys(own_kernel):
    grid = own_kernel / "grid.yaml"
    grid.write_text(grid.read_text() + "bandwidth: 2\n")
    value = read(grid, []).plain()
    assert not Draft202012Validator(schema()).is_valid(value)
    with_parts = schema(grid)
    assert Draft202012Validator(with_parts).is_valid(value)
    assert not Draft202012Validator(with_parts).is_valid(value | {"bandwidth": -1})
    kernels = with_parts["$defs"]["Cell"]["properties"]["kernel"]["anyOf"]
    assert [kernel["title"] for kernel in kernels if kernel.get("const") == "my_kernels.py:Cauchy"] != []


def test_a_grid_whose_part_is_not_there_is_refused(own_kernel):
    (own_kernel / "my_kernels.py").unlink()
    with pytest.raises(Faults, match=r"grid\.yaml:\d+:\d+: .*cannot read the file"):
        schema(own_kernel / "grid.yaml")


def test_a_grid_that_is_not_there_is_refused():
    with pytest.raises(Faults, match=r"no grid `mine\.yaml`"):
        schema("mine.yaml")

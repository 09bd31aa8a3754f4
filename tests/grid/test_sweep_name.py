"""What a sweep may be called."""

import json
import re
import unicodedata

import pytest
from grids import TINY
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.grid.model import LONGEST_NAME, PATTERN, is_sweep_name


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


signs = st.characters(categories=("L", "N", "P", "S", "Zs", "Cc"))


@given(st.text(signs, max_size=12) | st.sampled_from(["12", "a.yaml", "-a", "x" * 101]))
def test_a_grid_may_have_these_names_and_no_other(tmp_path_factory, name):
    grid = tmp_path_factory.mktemp("named") / "grid.yaml"
    quoted = json.dumps(name, ensure_ascii=False)
    grid.write_text((TINY % {"steps": 10, "seeds": 1}).replace("name: tiny", f"name: {quoted}"))
    try:
        found = load_grid(grid).name
    except KdxError as error:
        assert not is_sweep_name(unicodedata.normalize("NFC", name)), error
    else:
        assert is_sweep_name(found)


@pytest.mark.parametrize("stem", ["12", "-a", "a.yaml", " a"])
def test_the_name_of_a_file_is_that_of_its_grid_only_where_a_sweep_may_have_it(tmp_path, stem):
    grid = tmp_path / f"{stem}.yaml"
    text = TINY % {"steps": 10, "seeds": 1}
    grid.write_text(text.replace("name: tiny\n", ""))
    with pytest.raises(KdxError, match="cannot be the grid's name"):
        load_grid(grid)
    grid.write_text(text)
    assert load_grid(grid).name == "tiny"

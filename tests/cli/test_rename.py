"""`kdx rename` gives a sweep another name."""

import json

import pytest
from looked_after import completed, planned, refused, typed


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_sweep_is_known_by_its_new_name_with_all_it_has():
    completed(planned(2)[0])
    before = json.loads(typed("status", "tiny", "--json").stdout)
    said = typed("rename", "tiny", "first look")
    assert "write `name: first look` into" in said.stderr and "grid.yaml too" in said.stderr
    after = json.loads(typed("status", "first look", "--json").stdout)
    assert after == {**before, "sweep": "first look"}
    assert refused("status", "tiny").allowed == "first look"


def test_json_names_both_and_the_grid():
    planned(1)
    found = json.loads(typed("rename", "tiny", "other", "--json").stdout)
    assert (found["sweep"], found["formerly"]) == ("other", "tiny") and found["grid"].endswith("/grid.yaml")


def test_names_that_are_taken_or_unfit_are_refused():
    planned(1, name="one")
    planned(1, name="other")
    assert refused("rename", "one", "other").problem == "there is a sweep `other` already"
    assert refused("rename", "one", "one").problem == "the sweep is called `one` already"
    assert refused("rename", "on", "x").hint == "did you mean `one`?"
    for unfit in ("", "  ", "x" * 101, "a\nb", "a\x1bb"):
        assert "cannot be the name of a sweep" in refused("rename", "one", unfit).problem

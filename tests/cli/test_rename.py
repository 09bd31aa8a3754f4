"""`kdx rename` gives a sweep another name."""

import json
import re
import unicodedata
from pathlib import Path

import pytest
from looked_after import DB, completed, planned, refused, typed

from kdx.grid.load import load_grid
from kdx.store import reading
from kdx.store.database import open_database


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


def test_a_sweep_is_named_by_its_grid_file_too():
    planned(1)
    assert "sweep `tiny` is `other` now" in typed("rename", "grid.yaml", "other").stderr
    error = refused("rename", "grid.yaml", "third")
    assert error.problem == "this grid was not swept yet: there is no sweep `tiny` in runs.db"


@pytest.mark.slow
def test_names_that_are_taken_or_unfit_are_refused():
    planned(1, name="one")
    planned(1, name="other")
    assert refused("rename", "one", "other").problem == "there is a sweep `other` already"
    assert refused("rename", "one", "one").problem == "the sweep is called `one` already"
    assert refused("rename", "on", "x").hint == "did you mean `one`?"


@pytest.mark.slow
@pytest.mark.parametrize(
    "unfit",
    [
        "",
        "  ",
        "x" * 101,
        "a\nb",
        "a\x1bb",
        "a\u202eb",
        "a\u200bb",
        "a\u2028b",
        " a",
        "a ",
        "-a",
        "--db",
        "a.yaml",
        "a.yml",
        "12",
        "0" * 30,
    ],
)
def test_a_name_that_no_command_could_be_given_is_refused(unfit):
    planned(1, name="one")
    error = refused("rename", "one", "--", unfit)
    assert "cannot be the name of a sweep" in error.problem
    assert "at most 100 characters" in error.allowed and "is no number" in error.allowed
    assert json.loads(typed("status", "--json").stdout)[0]["sweep"] == "one"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "first-look",
        "a b",
        "1e3",
        "12 a",
        "0x1f",
        "1.5",
        "#h",
        "a: b",
        "a #b",
        "a:",
        "null",
        "true",
        "No",
        "~",
        "é",
        '"',
        "[a]",
        "{a",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
        "'a",
        "a'b\"c\\d",
        "? a",
        "|",
        ">",
        ".inf",
        "=",
        "a, b",
        "e\u0301",
    ],
)
def test_a_grid_that_follows_the_advice_has_the_new_name(name):
    planned(1)
    (advice,) = re.findall("write `(name: .*)` into ", typed("rename", "tiny", name).stderr)
    grid = Path("grid.yaml")
    grid.write_text(grid.read_text().replace("name: tiny", advice))
    assert load_grid("grid.yaml").name == unicodedata.normalize("NFC", name)
    with open_database(DB, write=False) as database:
        assert [one.name for one in reading.sweeps(database)] == [load_grid("grid.yaml").name]

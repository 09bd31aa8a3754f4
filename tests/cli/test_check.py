"""`kdx report --check` on a real database."""

import json
from pathlib import Path

import pytest
from looked_after import completed, planned, refused, typed


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    runs = planned(3)
    completed(runs[0], 2.5)
    Path("then.json").write_text(typed("report", "--json").stdout)
    Path("then.md").write_text(typed("report", "--format", "markdown").stdout)
    return tmp_path


@pytest.mark.parametrize("file", ["then.json", "then.md"])
def test_numbers_that_match_are_exit_code_0_and_others_5(file, folder):
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = typed("report", "--check", file)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.endswith(" values of tiny match sweep tiny\n")
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before

    other = next(run for run in planned(3) if run.seed == 1)
    completed(other, 2.25)
    done = typed("report", "--check", file)
    assert done.exit_code == 5
    assert "2.5" in done.stdout.splitlines()[0] and "2.25" in done.stdout.splitlines()[0]
    assert done.stderr.endswith(" differ; as they are now: kdx report tiny\n")
    told = json.loads(typed("report", "--check", file, "--json").stdout)
    assert (told["file"], told["tables"]) == (file, ["tiny"])
    assert len(told["differences"]) == len(done.stdout.splitlines())


def test_a_report_in_json_is_compared_with_the_sweep_that_it_names():
    planned(1, name="newer")
    assert typed("report", "--check", "then.json").exit_code == 0
    assert typed("report", "tiny", "--check", "then.md").exit_code == 0
    assert "of newer " not in typed("report", "--check", "then.json").stderr
    # A text names no sweep: it is compared with the one planned last, of which it is not.
    assert " values of newer compared" in typed("report", "--check", "then.md").stderr


@pytest.mark.parametrize("written", [["then.json", "--json"], ["then.md", "--format", "markdown"]])
def test_a_check_asks_for_what_the_file_shows(written):
    file, *form = written
    Path(file).write_text(typed("report", *form, "--against", "tsai2019").stdout)
    assert typed("report", "--check", file).exit_code == 0


def test_what_the_file_tells_and_nobody_asked_for_is_no_match():
    report = json.loads(Path("then.json").read_text())
    (table,) = report["tables"]
    (one, *_) = table["cells"]
    place = {"row": one["row"], "column": one["column"]}
    table["published"] = {"paper": "mine", "cells": [{**place, "published": 1.0}], "order": []}
    Path("then.json").write_text(json.dumps(report))
    done = typed("report", "--check", "then.json")
    assert (done.exit_code, done.stdout) == (5, "not compared: tiny: published values\n")
    assert "they match, 1 part could not be compared" in done.stderr
    assert json.loads(typed("report", "--check", "then.json", "--json").stdout)["not_compared"]


def test_what_cannot_be_compared_is_refused():
    told = refused("report", "--check", "then.json", "--claims")
    assert told.problem == "--claims answers claims instead of showing tables, for which --check would be"
    assert told.hint == "leave --claims or --check out"
    assert refused("report", "--check", "absent.json").exit_code == 2
    assert refused("report", "--check", "then.json", "--db", "absent.db").exit_code == 3

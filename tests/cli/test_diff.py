"""`kdx diff` compares two runs, two cells, two sweeps, or a grid with a sweep."""

import json
from pathlib import Path

import pytest
from grids import TINY
from looked_after import DB, claimed, planned, refused, typed

from kdx.grid.load import load_grid
from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunRecord


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def learned(run: RunRecord, losses: list[float], torch: str = "2.12") -> None:
    claimed(run)
    with open_database(DB, write=True) as database:
        writer = RunWriter(database, run.id, "me", 1)
        writer.begin({"torch": torch}, "data", "code", 0, None, {})
        writer.record([("train/loss", step, loss) for step, loss in enumerate(losses, 1)], len(losses))
        writer.complete(losses[-1], len(losses), losses[-1], {}, len(losses))


def compared(*words: str):
    return json.loads(typed("diff", *words, "--json").stdout)


def two_sweeps() -> tuple[tuple[RunRecord, ...], tuple[RunRecord, ...]]:
    """Of one cell each, with other steps."""
    found = []
    for name, steps in (("one", 10), ("two", 20)):
        Path(f"{name}.yaml").write_text(TINY.replace("name: tiny", f"name: {name}") % {"steps": steps, "seeds": 2})
        plan = load_grid(f"{name}.yaml")
        with open_database(DB, write=True, create=True) as database:
            found.append(reading.runs(database, recording.register(database, plan, plan.grid)))
    return found[0], found[1]


def test_two_runs_of_a_cell_differ_by_seed_library_and_curve():
    first, second = planned(2)
    learned(first, [4.0, 2.0, 1.0])
    learned(second, [4.0, 2.5, 1.0, 0.5], torch="2.13")
    found = compared(str(first.id), str(second.id))
    assert found["kind"] == "run" and found["settings"] == [{"name": "seed", "before": 0, "after": 1}]
    assert found["conditions"] == [{"name": "torch", "before": "2.12", "after": "2.13"}]
    (score,) = found["scores"]
    assert (score["before"], score["after"]) == ([1.0], [0.5])
    (curve,) = found["curves"]
    assert (curve["name"], curve["shared"], curve["first"]) == ("train/loss", 3, 2)
    assert (curve["largest"], curve["at"], curve["only_before"], curve["only_after"]) == (0.5, 2, 0, 1)
    text = typed("diff", str(first.id), str(second.id)).stdout
    assert "torch  2.12  2.13" in text and "-0.5" in text


def test_a_run_is_the_same_as_itself():
    (first,) = planned(1)
    learned(first, [4.0, 2.0])
    text = typed("diff", str(first.id), str(first.id)).stdout
    assert "settings: the same" in text and "conditions: the same" in text
    assert "curves: the same bits in all 1 metrics (2 numbers)" in text


def test_two_cells_are_compared_seed_by_seed():
    one, two = two_sweeps()
    for number, run in enumerate((*one, *two), 1):
        learned(run, [4.0, float(number)])
    found = compared(one[0].cell_id[:8], two[0].cell_id[:8])
    assert found["kind"] == "cell"
    assert {"name": "training.steps", "before": 10, "after": 20} in found["settings"]
    assert [(score["name"], score["before"], score["after"]) for score in found["scores"]] == [
        ("seed 0", [1.0], [3.0]),
        ("seed 1", [2.0], [4.0]),
    ]
    assert [(curve["of"], curve["first"]) for curve in found["curves"]] == [("seed 0", 2), ("seed 1", 2)]
    head = typed("diff", one[0].cell_id, two[0].cell_id).stdout.splitlines()[2]
    assert head.split() == [one[0].cell_id[:8], two[0].cell_id[:8]]


def test_two_sweeps_are_compared_by_plan_and_by_cells_of_the_same_words():
    one, two = two_sweeps()
    for number, run in enumerate((*one, *two), 1):
        learned(run, [4.0, float(number)])
    found = compared("one", "two")
    assert found["kind"] == "sweep" and len(found["only_before"]) == len(found["only_after"]) == 1
    assert {"name": "training.steps", "before": ["10"], "after": ["20"]} in found["settings"]
    assert [(score["before"], score["after"]) for score in found["scores"]] == [([1.0, 2.0], [3.0, 4.0])]
    text = typed("diff", "one", "two").stdout
    assert "cells: 0 in both, 1 in one only, 1 in two only" in text
    assert "cells: 1 in both, 0 in A only, 0 in B only" in typed("diff", "one", "one").stdout


def test_a_grid_is_compared_with_a_sweep_and_with_a_grid():
    two_sweeps()
    found = compared("one", "two.yaml")
    assert found["kind"] == "grid" and found["scores"] == found["conditions"] == []
    assert {"name": "training.steps", "before": ["10"], "after": ["20"]} in found["settings"]
    Path("runs.db").rename("away.db")
    assert compared("one.yaml", "two.yaml") == found
    assert "settings: the same" in typed("diff", "one.yaml", "one.yaml").stdout


def test_what_cannot_be_compared_is_refused():
    (first,) = planned(1)
    error = refused("diff", "tiny", str(first.id))
    assert error.problem == f"`tiny` is a sweep and `{first.id}` is a run"
    assert (
        refused("diff", str(first.id), "grid.yaml").problem
        == f"`{first.id}` is a run, and a grid is compared with a sweep"
    )
    assert refused("diff", "tiny", "tinny").hint == "did you mean `tiny`?"


def test_runs_that_have_not_begun_have_nothing_to_compare():
    first, second = planned(2)
    text = typed("diff", str(first.id), str(second.id)).stdout
    assert "conditions: the same" in text and "curves: none is recorded" in text

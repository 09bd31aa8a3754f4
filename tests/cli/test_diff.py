"""`kdx diff` compares two runs or two cells."""

import json

from grids import TINY
from looked_after import DB, claimed, planned, refused, registered, typed

from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunRecord


def learned(run: RunRecord, losses: list[float], torch: str = "2.12") -> None:
    claimed(run)
    with open_database(DB, write=True) as database:
        writer = RunWriter(database, run.id, "me", 1)
        writer.begin({"torch": torch}, "data", "code", 0, None, {})
        writer.record([("train/loss", step, loss) for step, loss in enumerate(losses, 1)], len(losses))
        writer.complete(losses[-1], len(losses), losses[-1], {}, len(losses))


def compared(*words: str):
    return json.loads(typed("diff", *words, "--json").stdout)


def two_sweeps() -> list[tuple[RunRecord, ...]]:
    """Two sweeps of one cell each, which differ in their steps."""
    grids = {10: TINY.replace("name: tiny", "name: one"), 20: TINY.replace("name: tiny", "name: two")}
    return [registered(grid % {"steps": steps, "seeds": 2}) for steps, grid in grids.items()]


def test_two_runs_of_a_cell_differ_by_seed_library_and_curve():
    first, second = planned(2)
    learned(first, [4.0, 2.0, 1.0])
    learned(second, [4.0, 2.5, 1.0, 0.5], torch="2.13")
    found = compared(str(first.id), str(second.id))
    assert found["kind"] == "run" and found["settings"] == [{"name": "seed", "before": 0, "after": 1}]
    assert found["conditions"] == [{"name": "torch", "before": "2.12", "after": "2.13"}]
    (score,) = found["scores"]
    assert (score["before"], score["after"]) == (1.0, 0.5)
    (curve,) = found["curves"][""]
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
    first, two = two_sweeps()
    for number, run in enumerate((*first, *two), 1):
        learned(run, [4.0, float(number)])
    found = compared(first[0].cell_id[:8], two[0].cell_id[:8])
    assert found["kind"] == "cell"
    assert {"name": "training.steps", "before": 10, "after": 20} in found["settings"]
    assert [(score["name"], score["before"], score["after"]) for score in found["scores"]] == [
        ("seed 0", 1.0, 3.0),
        ("seed 1", 2.0, 4.0),
    ]
    assert {of: [curve["first"] for curve in curves] for of, curves in found["curves"].items()} == {
        "seed 0": [2],
        "seed 1": [2],
    }
    head = typed("diff", first[0].cell_id, two[0].cell_id).stdout.splitlines()[1]
    assert head.split() == [first[0].cell_id[:8], two[0].cell_id[:8]]


def test_what_cannot_be_compared_is_refused():
    (first,) = planned(1)
    assert refused("diff", "tiny", str(first.id)).problem == "a sweep and a run are not compared"
    assert refused("diff", "tiny", "tiny").allowed == "two runs, or two cells"
    assert refused("diff", "tiny", "tinny").hint == "did you mean `tiny`?"


def test_runs_that_have_not_begun_have_nothing_to_compare():
    first, second = planned(2)
    text = typed("diff", str(first.id), str(second.id)).stdout
    assert "conditions: the same" in text and "curves: none is recorded" in text

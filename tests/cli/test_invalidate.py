"""`kdx invalidate` excludes runs from reports, and says so wherever they were."""

import json

from looked_after import DB, claimed, completed, planned, refused, typed

import kdx
from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.records import RunState


def three() -> None:
    for run, score in zip(planned(3), (1.0, 2.0, 3.0), strict=True):
        completed(run, score=score)


def test_a_run_is_out_of_every_place_that_shows_it_and_comes_back():
    three()
    assert typed("invalidate", "1", "--why", " the corpus\nwas cut ").exit_code == 0
    report = typed("report").stdout
    assert "invalidated 1/3" in report and "n = 2 of 3 seeds" in report
    assert "Excluded from this table: run 1 of seed 0 (the corpus was cut) in translation." in " ".join(report.split())
    out, *others = json.loads(typed("status", "tiny", "--json").stdout)["runs"]
    assert out["invalidated"] == "the corpus was cut" and all(run["invalidated"] is None for run in others)
    assert "excluded from reports: the corpus was cut" in typed("status", "tiny").stdout
    traced = typed("trace", "tiny", "translation", "--full").stdout
    assert "run 1 is excluded from reports: the corpus was cut" in traced
    known = {run.seed: run for run in kdx.runs("tiny", DB)}
    assert known[0].invalidated == "the corpus was cut" and not known[0].selected and known[1].selected
    typed("export", "--to", "out")
    assert "the corpus was cut" in (DB.parent / "out" / "runs.csv").read_text()
    assert typed("invalidate", "1", "--undo").exit_code == 0
    assert "invalidated" not in typed("report").stdout


def test_a_cell_that_is_out_of_tables_is_no_hole_that_waits_for_a_run():
    (run,) = planned(1)
    claimed(run)
    with open_database(DB, write=True) as database:
        recording.RunWriter(database, run.id, "me", 1).diverge("training loss is nan", 3)
    typed("invalidate", "1", "--why", "a wrong rate")
    said = typed("report")
    shown = " ".join(said.stdout.split())
    assert "invalidated 1/1" in shown and "no score yet" not in shown and "diverged" not in shown
    assert said.stderr == "1 cell: 0 with a score, 1 invalidated\n"
    assert "excluded from reports: a wrong rate; training loss is nan" in typed("status", "tiny").stdout


def test_an_older_generation_stands_in_its_place():
    three()
    with open_database(DB, write=True) as database:
        (again,) = recording.repeat(database, [1])
        (run,) = reading.by_ids(database, [again])
    completed(run, score=9.0)
    typed("invalidate", str(again), "--why", "a wrong machine")
    report = " ".join(typed("report").stdout.split())
    assert "invalidated" not in report and "n = 3 seeds" in report
    assert f"run {again} of seed 0 (a wrong machine)" in report


def test_what_cannot_be_is_refused_and_changes_nothing():
    first, second, _ = planned(3)
    completed(first)
    claimed(second)
    for words in ((), ("--why", " \n"), ("--undo", "--why", "cut")):
        assert refused("invalidate", "1", *words).problem == "one of --why and --undo is needed"
    assert refused("invalidate", "1", "--why", "x" * 10_001).allowed == "at most 10,000"
    assert "tiny" in refused("invalidate", "tiny", "--why", "cut").problem
    assert refused("invalidate", "77", "--why", "cut").problem == "there is no run 77"
    assert refused("invalidate", "1", "2", "--why", "cut").problem == "run 2 is running"
    assert refused("invalidate", "1", "--undo").problem == "run 1 is not excluded"
    with open_database(DB, write=False) as database:
        assert {run.invalidated for run in reading.inventory(database).runs} == {None}
    typed("invalidate", "1", "--why", "cut")
    assert refused("invalidate", "1", "--why", "again").problem == "run 1 is excluded already: cut"


def test_retry_trains_it_again_as_a_new_generation(ran):
    three()
    typed("invalidate", "1", "--why", "cut")
    typed("retry", "1")
    with open_database(DB, write=False) as database:
        new = reading.inventory(database).runs[-1]
    assert (new.seed, new.generation, new.state, new.invalidated) == (0, 1, RunState.PENDING, None)

"""`kdx retry RUN` does a run again."""

import pytest
from looked_after import DB, claimed, completed, planned, refused, typed

from kdx.cli import running
from kdx.store import reading, recording
from kdx.store.database import open_database
from kdx.store.records import RunState


@pytest.fixture(autouse=True)
def ran(tmp_path, monkeypatch):
    """The plans that would have been run."""
    monkeypatch.chdir(tmp_path)
    plans = []

    def run(plan, *_):
        plans.append(plan)
        return 0

    monkeypatch.setattr(running, "run_plan", run)
    return plans


def everything():
    with open_database(DB, write=False) as database:
        return [(run.seed, run.generation, run.state) for run in reading.inventory(database).runs]


def test_a_finished_run_gets_a_new_generation_and_the_one_before_stays(ran):
    first, second = planned(2)
    completed(first)
    assert typed("retry", str(first.id)).exit_code == 0
    assert everything() == [(0, 0, RunState.COMPLETED), (1, 0, RunState.PENDING), (0, 1, RunState.PENDING)]
    (plan,) = ran
    assert [run.key for run in plan.runs] == [(first.cell_id, 0)]
    assert refused("retry", str(first.id)).problem == f"run {first.id} has a newer generation already"
    assert second.state is RunState.PENDING


def test_the_plan_of_the_sweep_stays_as_it_was(ran):
    first, *_ = planned(3)
    completed(first)
    typed("retry", str(first.id))
    with open_database(DB, write=False) as database:
        assert len(reading.load_sweep(database).runs) == 4  # the new generation, and the one that tables still show


def test_a_run_that_failed_is_tried_again(ran):
    (run,) = planned(1)
    claimed(run)
    with open_database(DB, write=True) as database:
        recording.RunWriter(database, run.id, "me", 1).fail("ValueError: no", "Traceback …", 3)
    typed("retry", str(run.id))
    assert everything() == [(0, 0, RunState.PENDING)]
    assert len(ran) == 1


def test_what_is_not_there_or_planned_no_more_is_refused(ran):
    first, _ = planned(2)
    assert refused("retry", "77").problem == "there is no run 77"
    with open_database(DB, write=True) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE sweep_run SET planned = 0")
    assert refused("retry", str(first.id)).problem == f"no sweep plans run {first.id} any more"
    assert ran == []


def test_weights_that_were_lost_are_made_anew(terminal):
    from grids import TINY

    terminal.write("tiny.yaml", TINY % {"steps": 20, "seeds": 1})
    assert terminal.type("kdx sweep tiny.yaml").returncode == 0
    (before,) = terminal.folder.glob("runs.files/*/best-*.ckpt")
    before.unlink()
    done = terminal.type("kdx doctor")
    assert (done.returncode, "kdx retry 1 makes them anew" in done.stdout) == (5, True)
    assert terminal.type("kdx retry 1").returncode == 0
    (after,) = terminal.folder.glob("runs.files/*/best-*.ckpt")
    assert after.name == before.name  # so has it the same bits
    assert terminal.type("kdx doctor").returncode == 0
    assert terminal.type("kdx export --weights --to out").returncode == 0

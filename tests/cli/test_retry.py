"""`kdx retry RUN` does a run again."""

import pytest
from looked_after import DB, claimed, completed, diverged, failed, planned, refused, typed

from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.records import RunState
from kdx.tune.search import Searching
from tests.tune.searched import plan_of as searched_plan
from tests.tune.searched import train

pytestmark = pytest.mark.usefixtures("ran")


def everything():
    with open_database(DB, write=False) as database:
        return [(run.seed, run.generation, run.state) for run in reading.inventory(database).runs]


def test_a_finished_run_gets_a_new_generation_and_the_one_before_stays(ran):
    first, second = planned(2)
    completed(first)
    assert typed("retry", str(first.id)).exit_code == 0
    assert everything() == [(0, 0, RunState.COMPLETED), (1, 0, RunState.PENDING), (0, 1, RunState.PENDING)]
    (plan,) = ran
    assert [run.key for run in plan.runs] == [(first.cell_id, 0, None)]
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
    failed(run)
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


@pytest.mark.slow
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


def seeds_of(plan) -> list[int]:
    return [run.seed for run in plan.runs]


def test_runs_of_a_sweep_are_chosen_by_how_they_ended_and_by_words(ran):
    runs = planned(5)
    failed(runs[0])
    diverged(runs[1])
    completed(runs[2])
    with open_database(DB, write=True) as database:
        claims.cancel(database, [runs[3].id])
    typed("retry", "tiny", "state=failed")
    typed("retry", "tiny", "state=diverged")
    typed("retry", "tiny", "state=cancelled")
    assert [seeds_of(plan) for plan in ran] == [[0], [1], [3]]
    assert everything()[:4] == [
        (0, 0, RunState.PENDING),
        (1, 0, RunState.DIVERGED),
        (2, 0, RunState.COMPLETED),
        (3, 0, RunState.PENDING),
    ]
    assert everything()[-1] == (1, 1, RunState.PENDING)


def test_what_else_is_unfinished_in_the_sweep_waits_for_resume(ran, monkeypatch):
    first, second = planned(2)
    failed(first)
    following = "other runs of tiny are unfinished; resume them with: kdx resume tiny\n"
    assert following in typed("retry", "tiny", "state=failed").stderr
    assert [seeds_of(plan) for plan in ran] == [[0]]

    def run(runner, plan):
        claims.cancel(runner.database, [first.id, second.id])
        return 0

    monkeypatch.setattr("kdx.cli.running.Runner.run", run)
    assert following not in typed("retry", str(first.id)).stderr


def test_runs_are_tried_again_by_jobs_of_slurm(ran, monkeypatch):
    failed(planned(2)[0])
    submitted = []
    monkeypatch.setattr("kdx.cli.running.Runner._submit", lambda _, plan, slurm: submitted.append(plan))
    assert typed("retry", "tiny", "state=failed", "--slurm").exit_code == 0
    assert ([seeds_of(plan) for plan in submitted], ran) == ([[0]], [])
    assert everything()[0] == (0, 0, RunState.PENDING)


def test_a_whole_sweep_is_not_done_again_by_mistake(ran):
    completed(planned(2)[0])
    assert refused("retry", "tiny").problem == "which runs of `tiny`? No condition is given"
    assert "there is no run to train again" in typed("retry", "tiny", "--stale").stderr
    assert ran == []


def test_runs_at_which_somebody_works_are_left_alone(ran):
    first, *_ = planned(3)
    claimed(first)
    said = typed("retry", "tiny", f"cell={first.cell_id}")
    assert "1 run left as they are" in said.stderr
    assert [seeds_of(plan) for plan in ran] == [[1, 2]]


def test_several_runs_of_several_sweeps_are_done_sweep_by_sweep(ran):
    first = planned(2, name="one")
    other = planned(4, name="other")[2:]
    for run in (*first, *other):
        completed(run)
    typed("retry", str(first[0].id), str(other[1].id))
    # The first two are runs of both, so they are done as runs of the last planned.
    assert [(plan.name, seeds_of(plan)) for plan in ran] == [("other", [0, 3])]


def test_stale_runs_are_those_whose_code_has_changed_and_the_modules_are_named(ran, monkeypatch):
    from kdx.cell_code import code_of

    first, second, third = planned(3)
    spec = load_grid("grid.yaml").cells[0].spec
    now = dict(code_of(spec).modules)
    edited = {**now, "kdx.training.optimiser": "0" * 64}
    for run, modules in ((first, now), (second, edited), (third, None)):
        claimed(run)
        with open_database(DB, write=True) as database:
            writer = recording.RunWriter(database, run.id, "me", 1)
            writer.begin({"torch": "2"} | ({"code": modules} if modules else {}), "data", "code")
            writer.complete(1.0, 10, 1.0, {}, 10)
    said = typed("retry", "tiny", "--stale")
    assert f"note: the code of run {second.id} has changed since: kdx.training.optimiser" in said.stderr
    assert [seeds_of(plan) for plan in ran] == [[1]]
    assert everything()[-1] == (1, 1, RunState.PENDING)


@pytest.mark.slow
def test_runs_out_of_tables_are_done_again_only_where_they_are_named(ran, monkeypatch):
    first, second, third = planned(3)
    diverged(first)
    completed(second)
    completed(third)
    monkeypatch.setattr("kdx.cli.retry._changed", lambda plan, sweep, runs: {run.id: ("kdx.x",) for run in runs})
    typed("invalidate", "1", "2", "--why", "its corpus was cut")
    typed("retry", "tiny", "--stale")
    typed("retry", "tiny", "state=invalidated")
    assert [seeds_of(plan) for plan in ran] == [[2], [0, 1]]


def test_a_run_of_a_trial_is_left_to_its_search(tmp_path):
    plan = searched_plan(tmp_path)
    with open_database(DB, write=True, create=True) as database:
        recording.register(database, plan)
        run = Searching(database, plan).advance().runs[0]
        train(database, run)
        trained = reading.recorded(database, [run.cell.id])[run.key]
    before = everything()
    assert refused("retry", str(trained.id)).problem.startswith(f"run {trained.id} is of a trial")
    assert everything() == before

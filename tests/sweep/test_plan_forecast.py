"""A plan is a difference from the database, and has a cost where like runs have completed."""

import pytest
from grids import TINY
from sqlalchemy import update

from kdx.cell_code import code_of, evaluation_code_of
from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, resolve_evaluation
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.run_files.files import files_beside, folder_of
from kdx.store import claims, evaluations, reading, recording, remarks
from kdx.store.database import Database
from kdx.store.evaluations import EvaluationResult
from kdx.store.records import EvaluationRecord, Provenance, RunState
from kdx.store.schema import attempt
from kdx.sweep.forecast import Basis
from kdx.sweep.plan_forecast import (
    PlanForecast,
    RunStatus,
    changed_evaluations,
    changed_modules,
    forecast_plan,
)


@pytest.fixture
def plan(tmp_path) -> Plan:
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 2} + "axes: {kernel: [exponential, rbf, linear]}\n")
    return load_grid(grid)


def end(database: Database, run_id: int, how: str, seconds: float = 10.0, modules: dict | None = None, **said) -> None:
    number = claims.claim(database, run_id, "me", 60)
    assert number is not None
    hand = recording.RunWriter(database, run_id, "me", number, lambda: 2_000_000)
    hand.begin({"code": modules} if modules is not None else {}, "d", "c")
    if how == "complete":
        hand.record([("model/parameters", 0, 1000.0)], 0)
        hand.complete(1.0, 10, 1.0, {}, 10)
    else:
        getattr(hand, how)(**said)
    with database.write() as connection:
        ended = {"started": 100.0 * run_id, "ended": 100.0 * run_id + seconds}
        connection.execute(update(attempt).where(attempt.c.run_id == run_id).values(**ended))


def statuses(found: PlanForecast) -> list[RunStatus]:
    return [each.status for each in found.runs]


def test_without_a_database_all_is_new_and_nobody_knows_what_it_costs(plan):
    found = forecast_plan(None, plan)
    assert statuses(found) == [RunStatus.NEW] * 6
    assert (len(found.unknown), found.forecasts, found.seconds()) == (3, {}, [])
    assert found.memory(2) is None


def test_runs_of_a_cell_that_fails_are_told_as_paused_and_cost_nothing(tmp_path, database):
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 4})
    plan = load_grid(grid)
    recording.register(database, plan)
    for run_id in (1, 2):
        end(database, run_id, "fail", error=f"ValueError: {run_id}", traceback="", last_step=0)
    found = forecast_plan(database, plan)
    assert statuses(found) == [RunStatus.FAILED] * 2 + [RunStatus.PAUSED] * 2
    assert found.cells == {} and not any(each.decision.trains for each in found.runs)
    recording.reset(database, [1], [RunState.FAILED])
    assert statuses(forecast_plan(database, plan)) == [RunStatus.RETRIED, RunStatus.FAILED] + [RunStatus.NEW] * 2


def test_each_run_is_told_for_what_it_is(plan, database):
    recording.register(database, plan)
    now = dict(code_of(plan.cells[0].spec).modules)
    end(database, 1, "complete", modules=now)
    end(database, 2, "complete", modules={})
    end(database, 3, "fail", error="e", traceback="t", last_step=0)
    end(database, 4, "interrupt", last_step=5)
    claims.claim(database, 5, "another/process", 60)
    new, stale, failed, continued, running, pending = statuses(forecast_plan(database, plan))
    assert (new, stale, failed) == (RunStatus.REUSED, RunStatus.STALE, RunStatus.FAILED)
    assert (continued, running, pending) == (RunStatus.CONTINUED, RunStatus.RUNNING, RunStatus.NEW)
    recording.reset(database, [3], [RunState.FAILED])
    recording.repeat(database, [1])
    remarks.invalidate(database, [2], "the corpus was cut")
    again = statuses(forecast_plan(database, plan))
    assert again[:3] == [RunStatus.RETRIED, RunStatus.INVALIDATED, RunStatus.RETRIED]


def test_a_result_names_the_modules_that_changed_under_it(plan, database):
    recording.register(database, plan)
    now = dict(code_of(plan.cells[1].spec).modules)
    end(database, 2, "complete", modules=now | {"kdx.attention.kernels.rbf": "0" * 64})
    (stale,) = [each for each in forecast_plan(database, plan).runs if each.status is RunStatus.STALE]
    assert stale.changed == ("kdx.attention.kernels.rbf",)


def test_an_evaluation_names_the_modules_that_changed_under_it(tmp_path, database):
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 2} + "evaluations: {wide: {beam: [2, 3]}}\n")
    plan = load_grid(grid)
    recording.register(database, plan)
    (cell,) = plan.cells
    for run_id in (1, 2):
        end(database, run_id, "complete", modules=dict(code_of(cell.spec).modules))
    now = dict(evaluation_code_of(cell.spec).modules)
    first, second = plan.evaluations_of(cell.id)
    for one, code in ((first, now), (second, now | {"kdx.models.beam": "0" * 64})):
        evaluations.record(
            database, 1, EvaluationResult(one.id, one.settings, "b" * 64, {"code": code}, metrics={"loss": 1.0})
        )
    one, other = forecast_plan(database, plan).runs
    assert (one.status, one.changed) == (RunStatus.REUSED, ())
    assert one.changed_evaluations == {second.id: ("kdx.models.beam",)} and other.changed_evaluations == {}
    remarks.invalidate(database, [1], "the corpus was cut")
    assert forecast_plan(database, plan).runs[0].changed_evaluations == {}


def test_what_is_left_costs_what_like_runs_did(plan, database):
    recording.register(database, plan)
    end(database, 1, "complete", 10.0)
    end(database, 2, "complete", 30.0)
    found = forecast_plan(database, plan)
    by_kernel = {cell.spec.kernel: found.forecasts[cell.id] for cell, _ in found.cells.values()}
    assert [(by_kernel[name].seconds, by_kernel[name].basis) for name in ("exponential", "rbf", "linear")] == [
        (10.0, Basis.CELL),
        (30.0, Basis.CELL),
        (20.0, Basis.SIZE),
    ]
    assert found.seconds() == [20.0, 10.0, 30.0, 20.0]
    assert (found.wall_time(1), found.wall_time(2)) == (80.0, 40.0)
    assert (found.memory(1), found.memory(3)) == (2_000_000, 6_000_000)


def test_a_run_that_goes_on_costs_what_is_left_of_it(plan, database):
    recording.register(database, plan)
    end(database, 4, "complete", 10.0)
    from kdx.training.checkpoint import CheckpointFiles

    number = claims.claim(database, 1, "me", 60)
    hand = recording.RunWriter(database, 1, "me", number)
    hand.checkpoint(8)
    hand.interrupt(9)
    record = next(run for run in reading.runs(database, 1) if run.id == 1)
    CheckpointFiles(files_beside(database.location) / folder_of(record)).write("step", 8, {})
    found = forecast_plan(database, plan)
    assert found.seconds()[0] == pytest.approx(2.0)


def test_what_is_out_of_tables_is_not_stale_and_what_is_cancelled_did_not_fail(plan, database):
    recording.register(database, plan)
    end(database, 1, "complete", modules={})
    remarks.invalidate(database, [1], "the corpus was cut")
    claims.cancel(database, [2])
    first, second, *_ = forecast_plan(database, plan).runs
    assert (first.status, first.changed) == (RunStatus.INVALIDATED, ())
    assert second.status is RunStatus.CANCELLED


def test_the_modules_that_differ_are_named_gone_and_new_ones_too():
    spec = load_grid("quickstart").cells[0].spec
    now = dict(code_of(spec).modules)
    assert changed_modules(spec, now) == ()
    kernel, other, *_ = now
    before = {name: sha256 for name, sha256 in now.items() if name != other} | {kernel: "0" * 64, "kdx.gone": "1" * 64}
    assert changed_modules(spec, before) == tuple(sorted([kernel, other, "kdx.gone"]))


def test_code_that_a_cell_does_not_use_makes_it_not_stale():
    cells = load_grid("quickstart").cells
    exponential = next(cell.spec for cell in cells if cell.spec.kernel == "exponential")
    rbf = next(cell.spec for cell in cells if cell.spec.kernel == "rbf" and cell.spec.task == exponential.task)
    only = code_of(rbf).modules.keys() - code_of(exponential).modules.keys()
    assert "kdx.attention.kernels.rbf" in only
    assert changed_modules(exponential, code_of(exponential).modules) == ()


def test_an_evaluation_is_stale_by_its_own_code_and_not_by_that_of_the_training():
    spec = load_grid("quickstart").cells[0].spec
    same, other, missing = (
        resolve_evaluation(spec, EvaluationRequest("", EvaluationSettings(beam=beam))) for beam in (2, 3, 4)
    )
    now = dict(evaluation_code_of(spec).modules)
    evaluation = "kdx.training.evaluation"
    assert evaluation in now.keys() - code_of(spec).modules.keys()
    modules = {same.id: now, other.id: now | {evaluation: "0" * 64}, "nobody asks": {}}
    made = {
        key: EvaluationRecord(
            key, {}, 0.0, None, {}, None, {}, None, Provenance(None, None, {}, {}, modules=its_modules)
        )
        for key, its_modules in modules.items()
    }
    assert changed_evaluations([same, other, missing], made) == {other.id: (evaluation,)}
    assert changed_evaluations([same], {}) == {}

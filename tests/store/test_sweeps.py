"""A sweep keeps its plans and can be removed; results go only if somebody says so, never those of another sweep."""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select
from stored import rows, start

from kdx.grid.load import load_grid
from kdx.store import claims, recording, sweeps
from kdx.store.check import check
from kdx.store.database import Database
from kdx.store.records import RunState, TrialRecord
from kdx.store.remarks import annotate, invalidate
from kdx.store.schema import cell, metadata, metric, plan, run, sweep

TUNED = """
name: NAME
task: translation
data: {corpus: synthetic-translation}
tune: {parameters: {model.dropout: [0.0, 0.1]}, sampler: grid, trials: 2, seeds: 1}
"""


def test_a_sweep_keeps_every_plan_with_its_grid_as_it_was_written(database: Database, plan_of):
    first = replace(plan_of([0, 1], 2), sources={"a.yaml": "seeds: 2  # few\n", "base.yaml": "task: translation\n"})
    second = replace(plan_of([1, 2], 3), sources={"a.yaml": "seeds: 3\n"})
    sweep_id = recording.register(database, first)
    recording.register(database, second)
    old, new = sweeps.history(database, sweep_id)
    assert list(old.sources.items()) == [*first.sources.items()]
    assert (new.sources, old.grid["seeds"], new.grid["seeds"]) == (second.sources, [0, 1], [0, 1, 2])
    assert [set(item.cells) for item in (old, new)] == [{cell.id for cell in plan.cells} for plan in (first, second)]
    assert old.made <= new.made


def test_planning_the_same_again_adds_no_plan(database: Database, plan_of):
    plan = replace(plan_of(), sources={"a.yaml": "x"}, command="kdx sweep a.yaml")
    sweep_id = recording.register(database, plan)
    same = replace(plan, command="kdx sweep ./a.yaml")
    recording.register(database, same)
    assert len(sweeps.history(database, sweep_id)) == 1
    assert sweeps.history(database, sweep_id)[0].grid["command"] == "kdx sweep a.yaml"


def test_a_plan_read_from_the_database_keeps_the_grid_as_it_was_written(database: Database, plan_of):
    """So kdx resume registers the winners of a search."""
    plan = replace(plan_of(1), sources={"a.yaml": "x"})
    sweep_id = recording.register(database, plan)
    for _ in range(2):
        recording.register(database, plan_of(2))
    first, second = sweeps.history(database, sweep_id)
    assert (len(first.cells), len(second.cells)) == (1, 2)
    assert first.sources == second.sources == plan.sources


def test_a_comment_tables_seeds_or_cells_make_another_plan(database: Database, plan_of):
    plan = replace(plan_of([0, 1], 2), sources={"a.yaml": "x"})
    sweep_id = recording.register(database, plan)
    others = (
        replace(plan, sources={"a.yaml": "x  # y"}),
        replace(plan, description="other"),
        replace(plan_of([0, 1], 3), sources={"a.yaml": "x"}),
        replace(plan_of([0], 3), sources={"a.yaml": "x"}),
        plan,
    )
    for number, other in enumerate(others, 2):
        recording.register(database, other)
        assert len(sweeps.history(database, sweep_id)) == number


def test_plans_of_other_sweeps_are_not_reported(database: Database, plan_of):
    recording.register(database, plan_of(name="other"))
    sweep_id = recording.register(database, plan_of([], 1))
    (only,) = sweeps.history(database, sweep_id)
    assert only.cells == ()


def ended(database: Database, run_id: int) -> None:
    writer = start(database, run_id)
    writer.record([("train/entropy", 1, 1.0)], 1)
    writer.outputs("test/translations", ["a"])
    writer.documents("article", {"targets": [1.0]})
    writer.complete(1.0, 10, 1.0, {}, 10)


def counts(database: Database) -> dict[str, int]:
    with database.read() as connection:
        found = {
            name: connection.scalar(select(func.count()).select_from(one)) for name, one in metadata.tables.items()
        }
    return {name: count for name, count in found.items() if count}


def test_results_stay_and_what_never_started_goes_with_its_sweep(database: Database, sweep_id: int):
    ended(database, 1)
    annotate(database, sweep_id=sweep_id, text="gone", tags=["gone"])
    shown = sweeps.removal(database, sweep_id, results=False)
    assert (shown.run_ids, shown.kept, shown.plans) == ((2, 3, 4), 1, 1)
    sweeps.remove(database, shown, results=False)
    found = counts(database)
    assert found.keys().isdisjoint({"sweep", "sweep_cell", "sweep_run", "plan", "plan_cell", "remark"})
    assert (found["run"], found["cell"], found["metric"], found["attempt"]) == (1, 1, 1, 1)
    assert check(database).faults == ()


def test_results_go_with_all_that_is_theirs_in_every_generation(database: Database, sweep_id: int):
    ended(database, 1)
    (again,) = recording.repeat(database, [1])
    ended(database, again)
    annotate(database, run_id=1, text="odd", tags=["odd"])
    invalidate(database, [1], "cut")
    shown = sweeps.removal(database, sweep_id, results=True)
    assert shown.run_ids == (1, 2, 3, 4, again) and shown.kept == 0 and shown.seconds > 0
    sweeps.remove(database, shown, results=True)
    assert counts(database).keys() <= {"identity", "environment", "definitions", "component"}
    assert check(database).faults == ()


def test_runs_that_another_sweep_plans_or_has_planned_stay(database: Database, sweep_id: int, plan_of):
    # Of the other sweep's two seeds one is planned, and one was planned once.
    recording.register(database, plan_of(1, 2, "other"))
    recording.register(database, plan_of(1, 1, "other"))
    for run_id in (1, 2, 3, 4):
        ended(database, run_id)
    others = {row.id for row in rows(database, run)} - set(sweeps.removal(database, sweep_id, results=True).run_ids)
    assert len(others) == 2
    sweeps.remove(database, sweeps.removal(database, sweep_id, results=True), results=True)
    assert {row.id for row in rows(database, run)} == others
    assert {row.run_id for row in rows(database, metric)} == others
    assert len(rows(database, cell)) == 1 and len(rows(database, sweep)) == 1 and len(rows(database, plan)) == 2


def test_what_changed_since_somebody_agreed_is_not_removed(database: Database, sweep_id: int):
    shown = sweeps.removal(database, sweep_id, results=True)
    start(database, 1)
    with pytest.raises(sweeps.Changed):
        sweeps.remove(database, shown, results=True)
    assert len(rows(database, run)) == 4 and len(rows(database, sweep)) == 1


def test_a_cancelled_run_that_never_started_goes_with_its_sweep(database: Database, sweep_id: int):
    start(database, 1)
    claims.cancel(database, [1, 2])
    shown = sweeps.removal(database, sweep_id, results=False)
    assert (shown.run_ids, shown.kept) == ((2, 3, 4), 1)


def test_a_sweep_that_searches_is_removed_with_its_searches_if_no_other_sweep_asks_for_them(
    database: Database, tmp_path
):
    searched = tuned(database, tmp_path, "tuned")
    other = tuned(database, tmp_path, "other")
    everything = counts(database)
    sweeps.remove(database, sweeps.removal(database, searched, results=True), results=True)
    kept = {name: everything[name] for name in ("search", "trial", "run", "cell", "metric")}
    assert kept.items() <= counts(database).items(), "the other sweep asks for the same search"
    shown = sweeps.removal(database, other, results=False)
    assert (shown.run_ids, shown.kept) == ((), 2)
    sweeps.remove(database, shown, results=False)
    assert kept.items() <= counts(database).items(), "results stay"
    again = tuned(database, tmp_path, "tuned")
    shown = sweeps.removal(database, again, results=True)
    assert len(shown.runs) == 2
    sweeps.remove(database, shown, results=True)
    assert counts(database).keys() <= {"identity", "environment", "definitions", "component"}


def tuned(database: Database, folder: Path, name: str) -> int:
    """A sweep with a search of two trials, of which one has a run that ended."""
    (folder / "grid.yaml").write_text(TUNED.replace("NAME", name))
    plan = load_grid(folder / "grid.yaml")
    sweep_id = recording.register(database, plan)
    searching = plan.cells[0].search
    values = [{"model.dropout": item} for item in (0.0, 0.1)]
    drawn = [TrialRecord(number, one, {}, None) for number, one in enumerate(values)]
    recording.add_trials(database, [(searching, drawn)])
    first = rows(database, run)[0]
    if first.state == RunState.PENDING:
        ended(database, first.id)
    return sweep_id


def test_a_run_at_work_is_reported(database: Database, sweep_id: int):
    start(database, 2)
    assert sweeps.removal(database, sweep_id, results=False).running == (2,)

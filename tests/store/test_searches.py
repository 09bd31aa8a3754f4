"""Searches and trials as they are recorded."""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert
from stored import run_that_ended

from kdx.errors import DatabaseError
from kdx.grid.identity import cell_id
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.store import reading, recording, schema, sweeps
from kdx.store.database import Database
from kdx.store.records import RunState, SearchRecord, TrialRecord, TrialState, best_trial
from kdx.vocabulary import Direction

GRID = """
name: tuned
task: translation
data: {corpus: synthetic-translation}
tune: {parameters: {model.dropout: [0.0, 0.1, 0.2]}, sampler: grid, trials: TRIALS, seeds: 2}
"""


def planned(folder: Path, trials: int = 3) -> Plan:
    (folder / "grid.yaml").write_text(GRID.replace("TRIALS", str(trials)))
    return load_grid(folder / "grid.yaml")


def of_sweep(database: Database, sweep_id: int) -> tuple[SearchRecord, ...]:
    with database.read() as connection:
        return reading.searches_of_sweeps(connection, [sweep_id])[sweep_id]


def trials_of(database: Database, search_id: str) -> list[TrialRecord]:
    with database.read() as connection:
        return reading.trials(connection, [search_id])[search_id]


def test_a_plan_asks_for_its_searches_and_a_newer_one_for_its_own(database: Database, tmp_path):
    sweep = recording.register(database, planned(tmp_path, 2))
    assert [record.wanted for record in of_sweep(database, sweep)] == [2]
    recording.register(database, planned(tmp_path, 3))
    (found,) = of_sweep(database, sweep)
    assert (found.ordinal, found.wanted, found.seeds, found.left) == (0, 3, 2, 3)
    assert reading.runs(database, sweep) == ()


@pytest.mark.parametrize("given", [None, "training.steps=7", "seeds=2", "tune.trials=2", "tune.seeds=3", "removed"])
def test_winners_are_planned_unless_the_sweep_follows_another_plan_by_now(database: Database, tmp_path, given):
    first = planned(tmp_path)
    (cell,) = first.cells
    with_winner = replace(first, cells=(replace(cell, won=True),))
    sweep = recording.register(database, first)
    if given == "removed":
        sweeps.remove(database, sweeps.removal(database, sweep, results=False), results=False)
    elif given:
        recording.register(database, load_grid(tmp_path / "grid.yaml", given=[given]))
    for _ in range(2):  # another worker may have planned them before
        assert recording.register_winners(database, with_winner) is (given is None)
        assert len(reading.runs(database, sweep)) == (given is None)


def test_another_winner_of_a_search_takes_the_place_of_the_first(database: Database, tmp_path):
    first = planned(tmp_path)
    (cell,) = first.cells
    sweep = recording.register(database, first)
    for dropout in (0.1, 0.2):
        spec = cell.search.cell({"model.dropout": dropout})
        won = replace(cell, id=cell_id(spec), spec=spec, won=True)
        assert recording.register_winners(database, replace(first, cells=(won,)))
        assert [run.cell_id for run in reading.runs(database, sweep)] == [won.id]


def test_trials_are_added_once_with_a_run_for_each_tuning_seed(database: Database, tmp_path):
    plan = planned(tmp_path)
    sweep = recording.register(database, plan)
    of = plan.cells[0].search
    for dropout in (0.2, 0.1):
        first = TrialRecord(0, {"model.dropout": dropout}, {"grid_id": 0}, None)
        recording.add_trials(database, [(of, [first, TrialRecord(1, {"model.width": -1}, {}, None)])])
    (found,) = of_sweep(database, sweep)
    first, second = found.trials
    assert (first.parameters, first.attributes, first.state) == ({"model.dropout": 0.2}, {"grid_id": 0}, None)
    assert (second.cell_id, second.runs, second.state) == (None, (), TrialState.FAILED), "there is no such cell"
    assert (found.ended, found.left) == ({TrialState.FAILED: 1}, 2)
    assert tuple(run.seed for run in first.runs) == of.tuning.seeds
    assert {run.state for run in first.runs} == {RunState.PENDING}
    assert {run.key for run in first.runs} <= reading.inventory(database).planned
    assert reading.load_sweep(database, "tuned").searches == (found,)
    assert reading.searches_that_tried(database, first.cell_id) == (found,)
    assert reading.searches_that_tried(database, "0" * 32) == ()


def test_the_best_trial_completed_with_the_best_score_and_of_equal_ones_is_the_first():
    def trials(*ends: tuple[RunState, float | None]) -> list[TrialRecord]:
        return [TrialRecord(number, {}, {}, "0" * 32, (run_that_ended(0, *end),)) for number, end in enumerate(ends)]

    ended = trials((RunState.PRUNED, 9.0), (RunState.COMPLETED, 2.0), (RunState.COMPLETED, 2.0), (RunState.FAILED, 9.0))
    assert best_trial(ended, Direction.MAX).number == 1
    assert best_trial(trials((RunState.COMPLETED, 2.0), (RunState.COMPLETED, 1.0)), Direction.MIN).number == 1
    assert best_trial(trials((RunState.FAILED, None)), Direction.MAX) is None


def test_a_cell_and_seed_have_one_run_of_sweeps_and_one_of_each_search(database: Database, tmp_path):
    plan = planned(tmp_path)
    recording.register(database, plan)
    of = plan.cells[0].search
    recording.add_trials(database, [(of, [TrialRecord(0, {"model.dropout": 0.2}, {}, None)])])
    (trial,) = trials_of(database, of.id)
    key = {"cell_id": trial.cell_id, "seed": of.tuning.seeds[0], "generation": 0}
    usual = {"state": "pending", "attempt": 0, "progress_step": 0, "stalls": 0}
    with database.write() as connection:
        connection.execute(insert(schema.run).values(**key, **usual))
    for search_id in (None, of.id):
        with pytest.raises(DatabaseError, match="contradict"), database.write() as connection:
            connection.execute(insert(schema.run).values(**key, **usual, search_id=search_id))
    assert [run.search_id for run in trials_of(database, of.id)[0].runs] == [of.id, of.id]
    assert reading.recorded(database, [trial.cell_id]).keys() == {
        *(run.key for run in trial.runs),
        (trial.cell_id, of.tuning.seeds[0], None),
    }

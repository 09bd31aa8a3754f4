"""Searches and trials as they are recorded."""

from pathlib import Path

from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.store import reading, recording, searches
from kdx.store.database import Database
from kdx.store.records import RunState, TrialState
from kdx.store.searches import NewTrial

GRID = """
name: tuned
task: translation
data: {corpus: synthetic-translation}
tune: {parameters: {model.dropout: [0.0, 0.1, 0.2]}, sampler: grid, trials: TRIALS, seeds: 2}
"""


def planned(folder: Path, trials: int = 3) -> Plan:
    (folder / "grid.yaml").write_text(GRID.replace("TRIALS", str(trials)))
    return load_grid(folder / "grid.yaml")


def test_a_plan_asks_for_its_searches_and_a_newer_one_for_its_own(database: Database, tmp_path):
    sweep = recording.register(database, planned(tmp_path, 2), {})
    assert [one.search["tuning"]["trials"] for one in searches.of_sweep(database, sweep)] == [2]
    recording.register(database, planned(tmp_path, 3), {})
    (found,) = searches.of_sweep(database, sweep)
    assert (found.ordinal, found.search["tuning"]["trials"]) == (0, 3)
    assert reading.runs(database, sweep) == ()


def test_trials_are_added_once_with_a_run_for_each_tuning_seed(database: Database, tmp_path):
    plan = planned(tmp_path)
    recording.register(database, plan, {})
    of = plan.cells[0].search
    spec = of.cell({"model.dropout": 0.2})
    for parameters in ({"model.dropout": 0.2}, {"model.dropout": 0.1}):
        searches.add(database, [(of, [NewTrial(0, parameters, {"grid_id": 0}, spec), NewTrial(1, {}, {}, None)])])
    first, second = searches.trials(database, [of.id])[of.id]
    assert (first.parameters, first.attributes, first.state) == ({"model.dropout": 0.2}, {"grid_id": 0}, None)
    assert (second.cell_id, second.state) == (None, TrialState.FAILED), "there is no such cell"
    runs = reading.recorded(database, [first.cell_id])
    assert {seed for _, seed in runs} == {*of.tuning.seeds}
    assert {run.state for run in runs.values()} == {RunState.PENDING}
    assert {*runs} == reading.inventory(database).planned


def test_how_a_trial_ended_stands(database: Database, tmp_path):
    plan = planned(tmp_path)
    recording.register(database, plan, {})
    of = plan.cells[0].search
    searches.add(database, [(of, [NewTrial(0, {"model.dropout": 0.1}, {}, of.cell({"model.dropout": 0.1}))])])
    searches.settle(database, {(of.id, 0): (TrialState.COMPLETED, 0.1)})
    searches.settle(database, {(of.id, 0): (TrialState.FAILED, None)})
    (trial,) = searches.trials(database, [of.id])[of.id]
    assert (trial.state, trial.value) == (TrialState.COMPLETED, 0.1)


def test_a_sweep_has_its_searches_with_their_trials_and_cells_know_which_tried_them(database: Database, tmp_path):
    plan = planned(tmp_path)
    sweep = recording.register(database, plan, plan.grid)
    of = plan.cells[0].search
    specs = [of.cell({"model.dropout": one}) for one in (0.0, 0.1)]
    drawn = [NewTrial(number, {}, {}, spec) for number, spec in enumerate(specs)]
    searches.add(database, [(of, drawn)])
    with database.read() as connection:
        (found,) = searches.with_trials(connection, sweep)
    assert (found.id, found.labels, [one.number for one in found.trials]) == (of.id, {}, [0, 1])
    assert found.steps == {0: 0, 1: 0}
    assert reading.load_sweep(database, "tuned").searches == (found,)
    assert searches.that_tried(database, found.trials[1].cell_id) == (found,)
    assert searches.that_tried(database, "0" * 32) == ()

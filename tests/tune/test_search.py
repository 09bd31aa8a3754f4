"""A search goes on from its records: the same trials and winners, however often it is killed."""

import random
from dataclasses import replace

import pytest

from kdx.grid.identity import cell_id
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.plan_from_records import plan_of as plan_from_records
from kdx.store.plan_from_records import with_searches
from kdx.store.records import RunState, TrialState
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, search, train

CASES = [
    ("random", "none"),
    ("random", "median"),
    ("tpe", "median"),
    ("tpe", "hyperband"),
    ("cma-es", "none"),
    ("gp", "none"),
]


def outcome(found: Searching, plan):
    ids = [cell.search.id for cell in plan.cells]
    return [found.trials(key) for key in ids], [cell.id for cell in found.with_winners().trained]


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "pruner"), CASES)
def test_kills_and_the_order_of_runs_change_nothing(tmp_path, sampler, pruner):
    plan = plan_of(tmp_path, sampler, pruner)
    found = []
    for number, kills in enumerate((0.0, 0.5)):
        with open_database(tmp_path / f"{number}.db", write=True, create=True) as database:
            ended = outcome(search(database, plan, random.Random(number), kills), plan)
            with database.read() as connection:
                recorded = reading.trials(connection, [cell.search.id for cell in plan.cells])
            assert all(one.state for many in recorded.values() for one in many)
            found.append((*ended, {key: [(one.cell_id, one.value) for one in many] for key, many in recorded.items()}))
    assert found[0] == found[1]
    trials, winners, _ = found[0]
    assert [len(many) for many in trials] == [10, 10] and len(winners) == 2
    if pruner == "median":
        assert any(one.state is TrialState.PRUNED for many in trials for one in many)


@pytest.mark.slow
def test_the_winner_has_the_best_mean_over_the_tuning_seeds(tmp_path):
    plan = plan_of(tmp_path, seeds=2)
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        found = search(database, plan, random.Random(0))
        for cell in plan.cells:
            trials = found.trials(cell.search.id)
            best = found.winner(cell.search.id)
            assert best.value == max(one.value for one in trials)
            key = found.with_winners().cells[cell.ordinal].id
            runs = reading.recorded(database, [key]).values()
            assert best.value == pytest.approx(sum(run.valid_score for run in runs) / 2) and len(runs) == 2


@pytest.mark.slow
def test_a_trial_is_pruned_before_its_next_seed_and_kills_change_nothing(tmp_path):
    plan = plan_of(tmp_path, "random", "wilcoxon", seeds=8)
    found = []
    for number, kills in enumerate((0.0, 0.5)):
        with open_database(tmp_path / f"{number}.db", write=True, create=True) as database:
            found.append(outcome(search(database, plan, random.Random(number), kills), plan))
            runs = reading.inventory(database).runs
    assert found[0] == found[1]
    trials, winners = found[0]
    assert [len(many) for many in trials] == [10, 10] and len(winners) == 2
    pruned = [one for many in trials for one in many if one.state is TrialState.PRUNED]
    assert pruned and all(len(one.curve) < 8 for one in pruned), "their later seeds were not trained"
    assert {run.attempt for run in runs if run.state is RunState.PRUNED} == {0}
    assert all("by a search at tuning seed" in run.error for run in runs if run.state is RunState.PRUNED)


@pytest.mark.slow
def test_runs_are_of_their_search_alone_and_two_sweeps_that_ask_for_it_share_them(tmp_path):
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        whole = plan_of(tmp_path, "random", "none")
        trials, winners = outcome(search(database, whole, random.Random(0)), whole)
        same = replace(whole, name="same")
        recording.register(database, same)
        shared = Searching(database, same)
        assert shared.advance().runs == () and outcome(shared, same) == (trials, winners)
        # Another search draws the same trials, and trains them itself.
        pruned = plan_of(tmp_path, "random", "median")
        other = outcome(search(database, pruned, random.Random(0)), pruned)
        runs = reading.inventory(database).runs
        assert [one.parameters for one in other[0][0]] == [one.parameters for one in trials[0]]
        assert len({run.search_id for run in runs}) == 4 and len(runs) == 2 * len({run.cell_id for run in runs})
        # So does a sweep that plans the cell with the tuning seed.
        cell = replace(Searching(database, whole).with_winners().cells[0], search=None)
        best = whole.cells[0].search.cell(trials[0][0].parameters)
        plain = replace(whole, name="plain", cells=(replace(cell, id=cell_id(best), spec=best),), seeds=(1_000_000,))
        sweep = recording.register(database, plain)
        (run,) = reading.runs(database, sweep)
        assert (run.state, run.search_id) == (RunState.PENDING, None)
        assert outcome(shared, same) == (trials, winners)


@pytest.mark.slow
def test_trials_are_in_no_plan_and_their_files_stay(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        search(database, plan, random.Random(0))
        sweep = reading.load_sweep(database, "tuned")
        assert (sweep.runs, sweep.cells) == ((), ())
        inventory = reading.inventory(database)
        assert {run.key for run in inventory.runs} == inventory.planned
        again = with_searches(plan_from_records(sweep), sweep.searches)
        assert [cell.search for cell in again.cells] == [cell.search for cell in plan.cells]
        assert again.searched and Searching(database, again).advance().runs == ()


def test_a_failed_run_fails_its_trial_and_no_other(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        recording.register(database, plan)
        found = Searching(database, plan)
        trials = found.advance()
        first, *others = trials.runs
        record = reading.recorded(database, [first.cell.id])[first.key]
        attempt = claims.claim(database, record.id, "me", 60)
        recording.RunWriter(database, record.id, "me", attempt).fail("out of memory", "", 5)
        for run in others:
            train(database, run)
        found.advance()
        states = [one.state for cell in plan.cells for one in found.trials(cell.search.id)]
        assert found.done and states.count(TrialState.FAILED) == 1
        assert not found.with_winners().searched

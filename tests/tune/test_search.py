"""A search goes on from its records: the same trials and winners, however often it is killed and whoever trains."""

import random

import pytest

from kdx.store import reading, recording, searches
from kdx.store.database import open_database
from kdx.store.plan_from_records import plan_of as plan_from_records
from kdx.store.plan_from_records import with_searches
from kdx.store.records import TrialState
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
            found.append((*ended, searches.trials(database, [cell.search.id for cell in plan.cells])))
    assert found[0] == found[1]
    trials, winners, recorded = found[0]
    assert all(one.state for many in recorded.values() for one in many)
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
def test_a_run_that_another_grid_trained_whole_counts_as_this_search_would_have_ended_it(tmp_path):
    """Trained by a search without a pruner first: the one with a pruner has nothing left to train."""
    with open_database(tmp_path / "a.db", write=True, create=True) as database:
        pruned = plan_of(tmp_path, "random", "median")
        alone = outcome(search(database, pruned, random.Random(0)), pruned)
    with open_database(tmp_path / "b.db", write=True, create=True) as database:
        search(database, plan_of(tmp_path, "random", "none"), random.Random(0))
        before = reading.inventory(database).runs
        pruned = plan_of(tmp_path, "random", "median")
        recording.register(database, pruned, pruned.grid)
        found = Searching(database, pruned)
        assert found.advance().runs == () and found.done
        assert outcome(found, pruned) == alone
        assert reading.inventory(database).runs == before


@pytest.mark.slow
def test_a_run_that_another_search_ended_early_is_trained_again_whole(tmp_path):
    with open_database(tmp_path / "a.db", write=True, create=True) as database:
        whole = plan_of(tmp_path, "random", "none")
        alone = outcome(search(database, whole, random.Random(0)), whole)
    with open_database(tmp_path / "b.db", write=True, create=True) as database:
        search(database, plan_of(tmp_path, "random", "median"), random.Random(0))
        whole = plan_of(tmp_path, "random", "none")
        recording.register(database, whole, whole.grid)
        found = Searching(database, whole)
        plan = found.advance()
        assert plan.runs and {run.key for run in plan.runs} == plan.again
        ids = [reading.recorded(database, [run.cell.id])[run.key].id for run in plan.runs]
        recording.repeat(database, ids)
        for run in found.advance().runs:
            train(database, plan, run)
        found.advance()
        assert outcome(found, whole) == alone


@pytest.mark.slow
def test_trials_are_in_no_plan_and_their_files_stay(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        search(database, plan, random.Random(0))
        sweep = reading.load_sweep(database, "tuned")
        assert (sweep.runs, sweep.cells) == ((), ())
        inventory = reading.inventory(database)
        assert {(run.cell_id, run.seed) for run in inventory.runs} <= inventory.planned
        again = with_searches(plan_from_records(sweep), searches.of_sweep(database, sweep.id))
        assert [cell.search for cell in again.cells] == [cell.search for cell in plan.cells]
        assert again.searched and Searching(database, again).advance().runs == ()


def test_a_failed_run_fails_its_trial_and_no_other(tmp_path):
    from kdx.store import claims

    plan = plan_of(tmp_path)
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        recording.register(database, plan, plan.grid)
        found = Searching(database, plan)
        trials = found.advance()
        first, *others = trials.runs
        record = reading.recorded(database, [first.cell.id])[first.key]
        attempt = claims.claim(database, record.id, "me", 60)
        recording.RunWriter(database, record.id, "me", attempt).fail("out of memory", "", 5)
        for run in others:
            train(database, trials, run)
        found.advance()
        states = [one.state for cell in plan.cells for one in found.trials(cell.search.id)]
        assert found.done and states.count(TrialState.FAILED) == 1
        assert not found.with_winners().searched

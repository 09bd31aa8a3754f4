"""How far searches are, as `kdx status` shows it."""

import random

import pytest

from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.records import TrialState
from kdx.store.search_progress import progress, seconds_of_trials, work
from kdx.tune.search import Searching
from tests.tune.searched import plan_of, search, train


@pytest.mark.slow
def test_trials_count_as_they_end(tmp_path):
    plan = plan_of(tmp_path, seeds=2)
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        sweep_id = recording.register(database, plan, plan.grid)
        begun = Searching(database, plan)
        trials = begun.advance()
        first, second = (one for one in trials.runs if one.cell.id == trials.runs[0].cell.id)
        train(database, trials, first)
        begun.advance()
        assert [one.left for one in progress(database)] == [10, 10], "it has another tuning seed"
        train(database, trials, second)
        begun.advance()
        of_sweep = progress(database)
        assert {one.sweep_id for one in of_sweep} == {sweep_id}
        assert [(one.labels["kernel"], one.trials, one.seeds) for one in of_sweep] == [
            ("exponential", 10, 2),
            ("rbf", 10, 2),
        ]
        assert [dict(one.ended) for one in of_sweep] == [{TrialState.COMPLETED: 1}, {}]
        assert seconds_of_trials(database)[sweep_id] >= 0
        search(database, plan, random.Random(0))
        assert [one.left for one in progress(database)] == [0, 0]


def test_who_works_at_a_trial_works_for_the_sweep_that_asks_for_it(tmp_path):
    plan = plan_of(tmp_path)
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        sweep_id = recording.register(database, plan, plan.grid)
        run = Searching(database, plan).advance().runs[0]
        record = reading.recorded(database, [run.cell.id])[run.key]
        assert work(database) == ()
        claims.claim(database, record.id, "me", 60)
        (found,) = work(database)
        assert (found.sweep_id, found.run_id, found.owner) == (sweep_id, record.id, "me")

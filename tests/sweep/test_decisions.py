"""What `decide` is given comes from the database and from the files beside it."""

import pytest
from grids import TINY

from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.run_files.files import files_beside, folder_of
from kdx.store import claims, evaluations, reading, recording
from kdx.store.database import open_database
from kdx.store.evaluations import Made
from kdx.sweep.decide import Action
from kdx.sweep.decisions import decisions_in, lacks_evaluations
from kdx.training.checkpoint import CheckpointFiles, name_of


@pytest.fixture
def plan(tmp_path) -> Plan:
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 2} + "evaluations: {wide: {beam: [2, 3]}}\n")
    return load_grid(grid)


def test_without_a_database_all_is_new(plan):
    assert [one.action for one in decisions_in(None, plan)] == [Action.START, Action.START]


def test_what_is_evaluated_and_which_weights_are_left_decides(tmp_path, plan):
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        sweep = recording.register(database, plan, plan.grid)
        first, _ = reading.runs(database, sweep)
        assert not lacks_evaluations(database, plan)
        attempt = claims.claim(database, first.id, "me", 60)
        files = CheckpointFiles(files_beside(database.location) / folder_of(first))
        weights = files.write("best", 10, {"seed": 0})
        hand = recording.RunWriter(database, first.id, "me", attempt)
        hand.complete(1.0, 10, 1.0, {}, 10, weights_sha256=name_of(weights).sha256)
        decision, other = decisions_in(database, plan)
        assert (decision.action, other.action) == (Action.EVALUATE, Action.START)
        assert [one.settings["beam"] for one in decision.missing] == [2, 3]
        assert lacks_evaluations(database, plan)
        evaluations.record(database, first.id, Made(decision.missing[0].id, {}, None, metrics={}))
        assert [one.settings["beam"] for one in decisions_in(database, plan)[0].missing] == [3]
        weights.unlink()
        assert decisions_in(database, plan)[0].action is Action.SKIP
        assert not lacks_evaluations(database, plan)

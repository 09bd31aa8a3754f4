"""What is recorded of a run, a cell and a sweep; tests/cli/test_show.py has most of it."""

import pytest

from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.details import cell_details, run_details

GRID = "name: NAME\ntask: translation\ndata: {corpus: synthetic-translation}\nseeds: 2\n"


@pytest.fixture
def database(tmp_path):
    """Two sweeps with a cell in common; a run of it was completed and repeated."""
    with open_database(tmp_path / "runs.db", write=True, create=True) as opened:
        for name, axes in (("one", "{kernel: [rbf, linear]}"), ("two", "{kernel: [rbf], norm: [post]}")):
            (tmp_path / f"{name}.yaml").write_text(GRID.replace("NAME", name) + f"axes: {axes}\n")
            plan = load_grid(tmp_path / f"{name}.yaml")
            recording.register(opened, plan)
        first = reading.runs(opened, 1)[0]
        claims.claim(opened, first.id, "me", 60.0)
        writer = recording.RunWriter(opened, first.id, "me", 1)
        writer.record([("test/loss", 9, 2.0), ("model/parameters", 0, 5.0), ("train/loss", 1, 3.0)], 9)
        writer.complete(1.0, 9, 2.0, {}, 9)
        recording.repeat(opened, [first.id])
        yield opened


def test_a_run_has_its_cell_attempts_and_what_was_tested(database):
    found = run_details(database, 1)
    assert found.record.id == 1 and [attempt.number for attempt in found.attempts] == [1]
    assert found.metrics == {"test/loss": 2.0, "model/parameters": 5.0}
    assert found.cell.id == found.record.cell_id


def test_a_cell_has_all_generations_and_its_sweeps_the_last_planned_first(database):
    cell = reading.load_run(database, 1).cell_id
    found = cell_details(database, cell)
    assert list(found.planners) == ["two", "one"]
    assert found.labels == {"kernel": "rbf", "norm": "post"} and found.varies == ()
    assert [(run.seed, run.generation) for run in found.runs] == [(0, 0), (0, 1), (1, 0)]
    assert found.spec.plain["kernel"] == "rbf"

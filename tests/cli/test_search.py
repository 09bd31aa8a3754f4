"""A search alone (`kdx sweep --search-only`), killed at any moment, and its winners as a grid (`export --tuned`)."""

import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from looked_after import refused, registered
from waiting import wait_until

from kdx.grid.load import load_grid
from kdx.store import recording
from kdx.store.database import open_database
from tests.tune.searched import search

GRID = """\
name: tuned
seeds: 1
task: translation
data: {corpus: synthetic-translation}
model: {width: 16, heads: 2, inner: 16, dropout: 0.0}
training: {steps: 8, batch_tokens: 200, warmup: 2, validate_every: 4}
axes: {kernel: [exponential, rbf]}
tune:
  parameters: {training.learning_rate: {low: 1e-4, high: 1e-1, log: true}}
  sampler: tpe
  pruner: median
  trials: 6
  round: 2
"""
KDX = [sys.executable, "-m", "kdx"]
SEARCH = ("sweep", "grid.yaml", "--search-only", "--workers", "2")


def typed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KDX, *words], cwd=folder, capture_output=True, text=True, check=False)


def trials(folder: Path) -> list[tuple]:
    with closing(sqlite3.connect(folder / "runs.db")) as connection:
        return connection.execute(
            "SELECT trial.search_id, number, parameters, trial.cell_id, seed, state, valid_bits, valid_step FROM trial "
            "LEFT JOIN run ON run.search_id = trial.search_id AND run.cell_id = trial.cell_id ORDER BY 1, 2, 5"
        ).fetchall()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    (folder / "grid.yaml").write_text(GRID)
    done = typed(folder, *SEARCH)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("next: kdx sweep grid.yaml, or: kdx export tuned --tuned tuned.yaml\n")
    return folder


@pytest.mark.slow
def test_a_search_that_was_killed_before_its_copy_for_the_dashboard_is_copied_by_the_next_command(unbroken, tmp_path):
    folder = tmp_path / "killed"
    shutil.copytree(unbroken, folder)
    with closing(sqlite3.connect(folder / "runs.db")) as connection, connection:
        connection.execute("PRAGMA foreign_keys = off")
        optunas = "name LIKE 'trial_%' OR name LIKE 'stud%' OR name IN ('version_info', 'alembic_version')"
        made = connection.execute(f"SELECT name FROM sqlite_master WHERE type = 'table' AND ({optunas})").fetchall()
        for (name,) in made:
            connection.execute(f"DROP TABLE {name}")
    assert typed(folder, *SEARCH).returncode == 0
    with closing(sqlite3.connect(folder / "runs.db")) as connection:
        copied = connection.execute("SELECT count(*) FROM trials").fetchone()[0]
        ended = connection.execute("SELECT count(*) FROM trial").fetchone()[0]
    assert 0 < copied <= ended


@pytest.mark.slow
def test_it_searches_and_trains_no_winner(unbroken):
    assert [state for *_, state, _, _ in trials(unbroken)].count("completed") >= 8 and len(trials(unbroken)) == 12
    with closing(sqlite3.connect(unbroken / "runs.db")) as connection:
        tested = connection.execute("SELECT count(*) FROM run WHERE test_score IS NOT NULL").fetchone()
        rows = connection.execute("SELECT count(*) FROM metric WHERE name LIKE 'test/%'").fetchone()
        winners = connection.execute("SELECT DISTINCT state FROM run WHERE seed = 0").fetchall()
    assert (tested, rows, winners) == ((0,), (0,), [("pending",)]), "trials read validation alone"


def test_the_winners_are_written_as_a_grid(unbroken):
    done = typed(unbroken, "export", "tuned", "--tuned", "tuned.yaml")
    assert done.returncode == 0 and done.stderr == "exported 2 winners; next: kdx sweep tuned.yaml\n", done.stderr
    planned = typed(unbroken, "plan", "tuned.yaml")
    assert "2 runs of 2 cells × 1 seed" in planned.stdout + planned.stderr, planned.stderr
    assert {cell for cell, _ in winners(unbroken)} == {cell.id for cell in load_grid(unbroken / "tuned.yaml").cells}
    again = typed(unbroken, "export", "tuned", "--tuned", "tuned.yaml")
    assert again.returncode == 2 and "tuned.yaml" in again.stderr, "it is there already"


@pytest.mark.long
def test_a_search_that_is_killed_goes_on_as_if_nothing_had_happened(unbroken, tmp_path):
    (tmp_path / "grid.yaml").write_text(GRID)
    for kills in range(1, 5):
        with subprocess.Popen([*KDX, *SEARCH], cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda kills=kills: ended(tmp_path) >= 2 * kills, lambda: process.poll() is None)
            process.kill()
    done = typed(tmp_path, *SEARCH)
    assert done.returncode == 0, done.stderr
    assert trials(tmp_path) == trials(unbroken)


def ended(folder: Path) -> int:
    """How many runs have come to an end; 0 before there is a database."""
    if not (folder / "runs.db").exists():
        return 0
    with closing(sqlite3.connect(folder / "runs.db", timeout=300)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM run WHERE state IN ('completed', 'pruned')").fetchone()[0]
        except sqlite3.OperationalError:  # it is being made
            return 0


def winners(folder: Path) -> list[tuple]:
    with closing(sqlite3.connect(folder / "runs.db")) as connection:
        return connection.execute("SELECT cell_id, labels FROM sweep_cell WHERE planned ORDER BY 1").fetchall()


def test_what_is_not_searched_is_refused():
    Path("grid.yaml").write_text(GRID[: GRID.index("tune:")])
    assert refused("sweep", "grid.yaml", "--search-only").problem == "the grid has no `tune:`"
    assert not Path("runs.db").exists()
    registered(GRID[: GRID.index("tune:")])
    assert refused("export", "tuned", "--tuned", "tuned.yaml").problem == "sweep `tuned` tunes nothing"
    registered(GRID)
    fault = refused("export", "tuned", "--tuned", "tuned.yaml")
    assert (fault.problem, fault.hint) == ("no search of `tuned` has found a winner yet", "kdx resume tuned")


def test_winners_that_no_override_can_give_are_refused_as_a_grid(tmp_path):
    """Here each sub-grid has overrides, which stand in the place of those of the whole grid."""
    parts = "".join(
        f"  {name}: {{model: {{width: {width}}}, overrides: {{when: {{kernel: rbf}}, set: {{training.warmup: 3}}}}}}\n"
        for name, width in (("a", 16), ("b", 32))
    )
    (tmp_path / "grid.yaml").write_text(GRID.replace("model: {width: 16, ", "model: {") + f"grids:\n{parts}")
    tuned = load_grid(tmp_path / "grid.yaml")
    with open_database("runs.db", write=True, create=True) as database:
        winners_plan = search(database, tuned, random.Random(0)).with_winners()
        recording.register(database, winners_plan)
    fault = refused("export", "tuned", "--tuned", "tuned.yaml")
    assert fault.problem.startswith("no overrides of this grid give the winners")
    assert not Path("tuned.yaml").exists()


FAULTY = '''
from kdx.attention.interfaces import KernelFunction
from torch import Tensor


class Faulty(KernelFunction):
    """Fails after some steps."""

    formula = "k(q, k) = 1"
    gives = "weight"
    calls = 0

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        type(self).calls += 1
        if type(self).calls > 40:
            raise ValueError(f"call {type(self).calls}")
        return (query @ key.transpose(-1, -2)).exp()
'''
PAUSED = """\
name: paused
seeds: 1
task: answer
data: {corpus: copy, length: 4}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {steps: 60, batch_tokens: 64, warmup: 2, validate_every: 30}
axes: {kernel: [exponential, 'faulty.py:Faulty']}
tune:
  parameters: {training.learning_rate: {low: 1e-4, high: 1e-1, log: true}}
  sampler: random
  pruner: none
  trials: 4
"""


@pytest.mark.long
def test_a_search_whose_trials_fail_alike_is_paused_and_the_others_come_to_their_winners(tmp_path):
    (tmp_path / "faulty.py").write_text(FAULTY)
    (tmp_path / "grid.yaml").write_text(PAUSED)

    def states() -> dict[str, int]:
        with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
            return dict(connection.execute("SELECT state, count(*) FROM run GROUP BY state").fetchall())

    done = typed(tmp_path, "sweep", "grid.yaml", "--workers", "1")
    why = "2 runs of its search failed alike: ValueError in weight (faulty.py)"
    assert done.returncode == 4, done.stderr
    assert f"paused: {why}; try them again with: kdx resume paused\n" in done.stderr
    assert states() == {"failed": 2, "pending": 2, "completed": 5}, "four trials of the other, and its winner"
    shown = typed(tmp_path, "status", "paused").stdout
    assert f"search of faulty.py:Faulty of paused is paused: {why}; kdx resume paused" in shown
    done = typed(tmp_path, "resume", "paused", "--components", ".", "--workers", "1")
    assert done.returncode == 4 and "started" in done.stderr and f"paused: {why}" in done.stderr
    assert states() == {"failed": 2, "pending": 2, "completed": 5}
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        assert connection.execute("SELECT count(*) FROM attempt WHERE outcome = 'failed'").fetchone() == (4,)

"""Databases of every schema that there was."""

import importlib.util
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from each import each
from sqlalchemy import create_engine, inspect
from sqlalchemy.exc import IntegrityError

from kdx.grid.identity import canonical, resolved
from kdx.grid.load import load_grid
from kdx.grid.shipped import names
from kdx.grid.tuning import Range
from kdx.own_parts.part import OwnPart
from kdx.store import evaluations, leases, reading, recording
from kdx.store.check import check
from kdx.store.database import Database, open_database
from kdx.store.parts import load_parts
from kdx.store.records import RunState, TrialState
from kdx.store.schema import bits_of, metadata
from kdx.store.version import REVISION
from kdx.tune.dashboard import Dashboard
from kdx.tune.known_trial import KnownTrial
from kdx.vocabulary import Direction

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", "kdx.store:migrations")
    return ScriptDirectory.from_config(config)


METRIC_ROWS = {
    "0001": 71,
    "0002": 71,
    "0003": 78,
    "0004": 89,
    "0005": 89,
    "0006": 89,
    "0007": 89,
    "0008": 89,
    "0009": 89,
    "0010": 89,
    "0011": 89,
    "0012": 89,
}


PART = OwnPart("kernel", "a.py:A", "a", "A", {"a.py": "class A: pass\n"}).sha256
SUMS = {"targets": [3.0, 4.0], "nats": [0.1, 2.25]}
MADE_UP = {
    "the settings of evaluation 1 of run 1 are not what their id is the hash of",
    "the sums by document of run 1 do not add up to its test/loss",
    "the sums by document of evaluation 1 do not add up to its loss",
}
"""Faults of rows that no kdx wrote: they were put into these databases so that migrations meet them."""
DATABASES = sorted((Path(__file__).parent / "databases").glob("*.db"))


def test_every_schema_has_left_a_database(scripts: ScriptDirectory):
    assert {path.stem for path in DATABASES} == {script.revision for script in scripts.walk_revisions()}


@pytest.mark.slow
@pytest.mark.parametrize("old", DATABASES, ids=lambda path: path.stem)
def test_an_old_database_keeps_the_tables_that_optuna_made_in_it(old: Path, path: Path):
    shutil.copy(old, path)
    trials = [KnownTrial(number, {"x": 0.1 * number}, {}, TrialState.COMPLETED, float(number)) for number in range(3)]
    space = {"x": Range(0.0, 1.0)}

    def copied(count: int) -> int:
        dashboard = Dashboard(f"sqlite:///{path}", {})
        try:
            return dashboard.copy("a search", Direction.MIN, space, trials[:count])
        finally:
            dashboard.close()

    assert copied(2) == 2
    with open_database(path, write=True) as database:
        assert (database.backup is None) == (old.stem == REVISION)
        assert set(check(database).faults) <= MADE_UP
        with database.read() as connection:
            assert {"studies", "trials", "alembic_version", "trial"} <= {*inspect(connection).get_table_names()}
    assert copied(2) == 0, "they are still there"
    assert copied(3) == 1, "and Optuna goes on with them"


@pytest.mark.parametrize("old", DATABASES, ids=lambda path: path.stem)
def test_an_old_database_is_upgraded_and_used(old: Path, path: Path):
    shutil.copy(old, path)
    with open_database(path, write=True) as database:
        assert (database.backup is None) == (old.stem == REVISION)
        checked = check(database)
        assert set(checked.faults) <= MADE_UP
        assert (checked.rows["sweep"], checked.rows["cell"], checked.rows["metric"]) == (3, 5, METRIC_ROWS[old.stem])

        tiny = reading.load_sweep(database, "tiny")
        assert [run.test_score for run in tiny.runs] == pytest.approx([3.400065603748809, 3.380782758048992])
        assert len(reading.curve(database, 1, "train/loss")) == 5
        assert len(reading.outputs(database, 1, "test/translations")) == 200
        states = {run.state for run in reading.load_sweep(database, "mixed").runs}
        assert states == {RunState.COMPLETED, RunState.FAILED, RunState.DIVERGED}
        assert all(run.undertrained is None for run in tiny.runs)
        known = [tiny.provenance[run.id].facts for run in tiny.runs]
        assert all(facts["test/unknown_rate"] == 0 for facts in known) if old.stem >= "0004" else known == [None, None]
        made = evaluations.of_runs(database, [run.id for run in tiny.runs])
        found = [one.metrics for of_run in made.values() for one in of_run.values()]
        assert found == ([{"loss": 1.25}] if old.stem >= "0007" else [])
        kept = [part.sources for part in load_parts(database, [PART]).values()]
        assert kept == ([{"a.py": "class A: pass\n"}] if old.stem >= "0008" else [])
        by_document = [
            *tiny.documents.values(),
            *(one.documents for of_run in made.values() for one in of_run.values()),
        ]
        known = [one and (one.unit, one.sums) for one in by_document]
        assert known == ([("block", SUMS)] * 2 if old.stem >= "0009" else [None] * (old.stem >= "0007"))
        (attempt,) = reading.attempts(database, 4)
        assert "do not fill 32768 streams" in attempt.traceback

        for run in reading.load_sweep(database, "stopped").runs:
            number = leases.claim(database, run.id, "me", 60)
            hand = recording.RunWriter(database, run.id, "me", number)
            hand.record([("valid/loss", 800, 3.5)], 800)
            hand.complete(33.0, 800, 32.5, {}, 800)
        assert {run.test_score for run in reading.load_sweep(database, "stopped").runs} == {32.5}


def migration(scripts: ScriptDirectory, revision: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"migration_{revision}", scripts.get_revision(revision).path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fourth(scripts: ScriptDirectory) -> ModuleType:
    """The migration that completes cells and corrects what was told as diverged."""
    return migration(scripts, "0004")


@pytest.fixture(scope="module")
def completed(scripts: ScriptDirectory, fourth: ModuleType) -> Callable[[str], dict[str, Any]]:
    """A cell's text as all migrations together complete it."""
    later = [migration(scripts, revision) for revision in ("0006", "0008", "0012")]
    return lambda text: json.loads(reduce(lambda cell, one: one.completed(cell), later, fourth.resolved(text)))


def test_the_neutral_values_of_the_migrations_are_those_of_a_cell(completed: Callable[[str], dict[str, Any]]):
    """Where this fails a field was added: the cells of before lack it in `cell.resolved`, so add a migration."""
    text = '{"data":{},"model":{},"training":{}}'
    assert resolved(text) == completed(text)


@each("name", names())
def test_cells_of_before_are_completed_as_they_would_be_registered(
    completed: Callable[[str], dict[str, Any]], name: str
):
    for planned in load_grid(name).cells:
        assert completed(canonical(planned.spec)) == planned.spec.model_dump(mode="json", by_alias=True)


def test_cells_of_an_old_database_are_whole_once_it_is_upgraded(path: Path):
    shutil.copy(DATABASES[0], path)
    with open_database(path, write=True), closing(sqlite3.connect(path)) as connection:
        cells = connection.execute("SELECT spec, resolved FROM cell").fetchall()
    assert len(cells) == 5
    for text, whole in cells:
        assert json.loads(whole) == resolved(text)


REASON = "final validation loss 3.775 is not below 3.611, the unigram distribution's"


LOSSES = {"first": ("train/loss", 1), "last": ("valid/loss", 40)}


@pytest.mark.parametrize(
    ("changes", "completes"),
    [
        ({}, True),
        ({"last": 4.9}, True),
        ({"last": 5.1}, False),
        ({"first": None}, False),
        ({"test_score": float("inf")}, False),
        ({"test_score": None}, False),
        ({"error": "training loss is nan at step 7"}, False),
        ({"state": "failed"}, False),
    ],
)
def test_what_learned_too_little_is_told_as_undertrained_no_longer_as_diverged(path: Path, changes, completes):
    """Its first training loss was 4, so it would have to end above 5."""
    shutil.copy(DATABASES[2], path)
    was = {"state": "diverged", "error": REASON, "valid_score": 3.7, "test_score": 3.8, "first": 4.0, "last": 3.775}
    was |= changes
    with closing(sqlite3.connect(path)) as connection:
        (trigger,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'run_final_state'").fetchone()
        connection.execute("DROP TRIGGER run_final_state")
        columns = {name: value for name, value in was.items() if name not in LOSSES}
        for score in ("valid", "test"):
            number = was[f"{score}_score"]
            columns[f"{score}_bits"] = None if number is None else bits_of(number)
        connection.execute(
            f"UPDATE run SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = 1", [*columns.values()]
        )
        connection.execute("UPDATE attempt SET outcome = ? WHERE run_id = 1", [was["state"]])
        for loss, at in LOSSES.items():
            connection.execute("DELETE FROM metric WHERE run_id = 1 AND name = ? AND step = ?", at)
            if was[loss] is not None:
                connection.execute(
                    "INSERT INTO metric VALUES (1, ?, ?, ?, ?, 1, 0)", (*at, was[loss], bits_of(was[loss]))
                )
        connection.execute(trigger)
        connection.commit()
    with open_database(path, write=True) as database:
        run = reading.load_sweep(database, "tiny").runs[0]
        (attempt,) = reading.attempts(database, 1)
        expected = ("completed", None, REASON) if completes else (was["state"], was["error"], None)
        assert (run.state, run.error, run.undertrained) == expected
        assert attempt.outcome == expected[0]
        assert set(check(database).faults) <= MADE_UP
        if completes:
            with pytest.raises(IntegrityError, match="final state"), database.write() as connection:
                connection.exec_driver_sql("UPDATE run SET state = 'failed' WHERE id = 1")


def test_migrations_name_constraints_as_the_schema_does(database: Database):
    """Alembic compares no names of keys and no checks."""
    fresh = create_engine("sqlite://")
    metadata.create_all(fresh)
    with fresh.connect() as wanted, database.read() as made:
        for table in metadata.tables:
            for what in ("get_pk_constraint", "get_unique_constraints", "get_check_constraints", "get_foreign_keys"):
                assert getattr(inspect(made), what)(table) == getattr(inspect(wanted), what)(table), (table, what)

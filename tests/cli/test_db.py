"""`kdx db` looks after the database itself."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from looked_after import DB, completed, planned, refused, states, typed

from kdx.store.schema import metadata


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_sound_database_is_counted():
    planned(2)
    done = typed("db", "check")
    assert (done.exit_code, done.stderr) == (
        0,
        "runs.db: nothing is wrong; copy it with: kdx db backup FILE\n",
    )
    counts = {table: int(rows) for rows, table in map(str.split, done.stdout.splitlines())}
    assert counts.keys() == metadata.tables.keys()
    assert {table: rows for table, rows in counts.items() if rows} == {
        "cell": 1,
        "identity": 1,
        "plan": 1,
        "plan_cell": 1,
        "run": 2,
        "sweep": 1,
        "sweep_cell": 1,
        "sweep_run": 2,
    }


def test_what_is_wrong_is_told_with_exit_code_5():
    planned(2)
    with closing(sqlite3.connect(DB, isolation_level=None)) as connection:
        connection.execute("DELETE FROM cell")
    done = typed("db", "check")
    assert done.exit_code == 5
    assert sorted(done.stdout.splitlines()) == [
        "wrong: 1 rows of plan_cell name a row of cell that is not there",
        "wrong: 1 rows of sweep_cell name a row of cell that is not there",
        "wrong: 2 rows of run name a row of cell that is not there",
        "wrong: 2 rows of sweep_run name a row of cell that is not there",
    ]
    assert done.stderr == ("runs.db: 4 found; take it back from a copy, or save what is left: sqlite3 FILE .recover\n")
    assert len(json.loads(typed("db", "check", "--json").stdout)["faults"]) == 4


def test_a_copy_has_the_results_and_is_made_once(folder):
    completed(planned(1)[0])
    done = typed("db", "backup", "copies of mine.db")
    assert done.stdout == "copies of mine.db\n"
    assert done.stderr.startswith("copied runs.db, ")
    assert done.stderr.endswith("; read it with: kdx report --db 'copies of mine.db'\n")
    assert refused("db", "backup", "copies of mine.db").exit_code == 2
    assert refused("db", "backup", "runs.db").exit_code == 2
    assert refused("db", "backup", "absent/copy.db").exit_code == 74
    Path("copies of mine.db").replace(DB)
    assert states() == ["completed"]

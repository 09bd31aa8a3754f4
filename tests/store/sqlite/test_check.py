"""What is wrong with a file below its rows."""

import sqlite3
from pathlib import Path

import pytest
from stored import spoil

from kdx.store.check import check
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter


def faults(path: Path) -> tuple[str, ...]:
    with open_database(path, write=False) as database:
        return check(database).faults


def test_a_row_that_names_what_is_not_there_is_found(database: Database, path: Path, hand: RunWriter):
    spoil(path, "DELETE FROM run WHERE id = 1")
    assert set(faults(path)) == {
        "1 rows of attempt name a row of run that is not there",
        "1 rows of metric name a row of run that is not there",
        "1 rows of output name a row of run that is not there",
    }


def test_flipped_bytes_are_found(database: Database, path: Path, hand: RunWriter):
    hand.record([("train/loss", step, 1.0) for step in range(2000)], 2000)
    content = bytearray(path.read_bytes())
    content[-20_000:] = b"\xff" * 20_000
    path.write_bytes(content)
    found = faults(path)
    assert found and all(fault.startswith(("SQLite finds: ", "the database is damaged")) for fault in found)


def test_a_check_writes_nothing(database: Database, path: Path, hand: RunWriter):
    before = path.read_bytes(), path.stat().st_mtime_ns
    faults(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("UPDATE run SET state = 'lost' WHERE id = 2", "SQLite finds: CHECK constraint failed in run"),
        ("UPDATE sweep SET grid = '{'", "SQLite finds: CHECK constraint failed in sweep"),
        ("UPDATE metric SET step = -1", "SQLite finds: CHECK constraint failed in metric"),
        ("UPDATE sweep_cell SET labels = '{\"a\": 1}'", "2 rows of sweep_cell have a labels that kdx never writes"),
    ],
)
def test_a_value_that_kdx_never_writes_is_found(database: Database, path: Path, hand: RunWriter, change, expected):
    spoil(path, "PRAGMA ignore_check_constraints = ON", change)
    assert faults(path) == (expected,)


def test_no_program_writes_a_value_of_another_type(database: Database, path: Path, hand: RunWriter):
    for change in ("UPDATE run SET generation = '0/../x'", "UPDATE metric SET step = 2.5"):
        with pytest.raises(sqlite3.IntegrityError, match="cannot store"):
            spoil(path, "PRAGMA ignore_check_constraints = ON", change)

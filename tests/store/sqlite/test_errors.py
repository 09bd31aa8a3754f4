"""Faults of a file that is open, each told with what to do."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from sqlalchemy import event
from stored import add_cell, cells, pragma

from kdx.errors import FREE_SPACE, TRY_AGAIN, DatabaseError, StorageError
from kdx.store.database import Database, open_database


def test_a_damaged_database_is_reported(database: Database, path: Path):
    for number in range(50):
        add_cell(database, f"{number:032x}", 3000)
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    database.close()  # what it has read once it does not read again
    path.write_bytes(content)
    with pytest.raises(DatabaseError) as caught:
        cells(database)
    assert str(caught.value) == (
        f"{path}: the database is damaged\n  hint: restore a backup, or save what is left with: sqlite3 FILE .recover"
    )


def test_a_full_disk_is_reported_and_what_was_recorded_stands(database: Database, path: Path):
    add_cell(database, "b" * 32)
    pages = pragma(database, "page_count")

    @event.listens_for(database._engine, "begin")
    def limit(connection) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StorageError) as caught:
        add_cell(database, "a" * 32, 100_000)
    assert caught.value.exit_code == 74
    assert str(caught.value) == (f"{path}: the disk is full\n  hint: {FREE_SPACE}")
    with open_database(path, write=True) as again:
        assert cells(again) == ["b" * 32]
        add_cell(again, "d" * 32, 100_000)
        assert pragma(again, "integrity_check") == "ok"


def test_a_failing_disk_is_reported_and_what_was_recorded_stands(database: Database, path: Path):
    code = f"""
        import resource, signal, sys
        from sqlalchemy import insert
        from kdx.errors import StorageError
        from kdx.store.database import open_database
        from kdx.store.schema import cell

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        written = 0
        try:
            with open_database({str(path)!r}, write=True) as database:
                while True:
                    with database.write() as connection:
                        connection.execute(insert(cell).values(id=f"{{written:032x}}", spec="x" * 20_000))
                    written += 1
        except StorageError as error:
            print(written, error.exit_code, error, sep="\\n")
    """
    output = subprocess.check_output([sys.executable, "-c", textwrap.dedent(code)], text=True)
    written, exit_code, message = output.split("\n", 2)
    assert int(written) > 1
    assert exit_code == "74"
    assert message == (f"{path}: the disk failed (SQLITE_IOERR_WRITE)\n  hint: check the disk, {TRY_AGAIN}\n")
    assert len(cells(database)) == int(written)
    assert pragma(database, "integrity_check") == "ok"

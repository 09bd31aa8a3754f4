"""Copies of a database."""

import multiprocessing
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from sqlalchemy import insert
from stored import CELL, add_cell, cells, digest, pragma

from kdx.errors import AccessError, KdxError
from kdx.store.database import Database, open_database
from kdx.store.refusals import DamagedDatabaseError
from kdx.store.schema import cell
from kdx.store.sqlite import database as module
from kdx.store.sqlite.file import APPLICATION_ID


def test_a_copy_is_the_database(database: Database, path: Path):
    add_cell(database)
    copy = path.with_name("copy of 100%.db")
    database.back_up(copy)
    with open_database(copy, write=True) as opened:
        assert cells(opened) == [CELL]
        assert pragma(opened, "application_id") == APPLICATION_ID
        add_cell(opened, "d" * 32)
    assert cells(database) == [CELL]
    assert {file.name for file in path.parent.iterdir()} == {
        path.name,
        copy.name,
        f"{path.name}-journal",
        f"{copy.name}-journal",
    }


def test_a_copy_taken_while_others_write_has_whole_transactions(database: Database, path: Path, in_processes):
    def write() -> int:
        with open_database(path, write=True) as mine:
            for number in range(15):
                with mine.write() as connection:
                    names = [{"id": f"{os.getpid():016x}{number:08x}{part:08x}", "spec": "x"} for part in range(10)]
                    connection.execute(insert(cell), names)
        return 0

    def copy() -> int:
        counts = []
        with open_database(path, write=False) as source:
            for number in range(15):
                target = path.with_name(f"{os.getpid()}-{number}.db")
                source.back_up(target)
                with open_database(target, write=False) as opened:
                    counts.append(len(cells(opened)))
                    assert pragma(opened, "integrity_check") == "ok"
        assert counts == sorted(counts) and not any(count % 10 for count in counts)
        return 0

    turn = multiprocessing.get_context("fork").Value("i", 0)

    def either() -> int:
        with turn.get_lock():
            turn.value += 1
            mine = turn.value
        return (write, copy, write)[mine - 1]()

    assert in_processes(either, 3) == ["0"] * 3
    assert len(cells(database)) == 300


def test_a_copy_overwrites_nothing(database: Database, path: Path):
    other = path.with_name("other.db")
    for target in (other, path):
        other.write_text("mine")
        before = digest(target)
        with pytest.raises(KdxError) as caught:
            database.back_up(target)
        assert (
            str(caught.value) == f"{target}: there is a file of this name\n  hint: name another; nothing is overwritten"
        )
        assert digest(target) == before


def test_a_copy_gives_way_to_a_file_that_came_meanwhile(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
):
    target, copy = path.with_name("copy.db"), module._copy
    monkeypatch.setattr(module, "_copy", lambda *those: (copy(*those), target.write_text("mine")))
    with pytest.raises(KdxError, match="there is a file of this name"):
        database.back_up(target)
    assert target.read_text() == "mine"
    assert not list(path.parent.glob(".kdx-*"))


def test_a_copy_that_cannot_be_written_leaves_nothing(database: Database, path: Path, tmp_path: Path):
    for number in range(50):
        add_cell(database, f"{number:032x}", 20_000)
    code = f"""
        import resource, signal
        from pathlib import Path
        from kdx.errors import StorageError
        from kdx.store.database import open_database
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        with open_database({str(path)!r}, write=False) as database:
            try:
                database.back_up(Path({str(tmp_path / "copy.db")!r}))
            except StorageError as error:
                print(error)
    """
    message = subprocess.check_output([sys.executable, "-c", textwrap.dedent(code)], text=True)
    assert message.startswith(f"{tmp_path / 'copy.db'}: no copy of the database can be written: ")
    assert {file.name for file in tmp_path.iterdir()} == {path.name, f"{path.name}-journal"}
    with pytest.raises(AccessError, match="no copy of the database can be written: No such file or directory"):
        database.back_up(tmp_path / "absent" / "copy.db")


def test_of_a_damaged_database_no_copy_is_made(database: Database, path: Path):
    for number in range(50):
        add_cell(database, f"{number:032x}", 3000)
    content = bytearray(path.read_bytes())
    content[-40_000:] = b"\xff" * 40_000
    path.write_bytes(content)
    with pytest.raises(DamagedDatabaseError, match=re.escape(f"{path}: the database is damaged")):
        database.back_up(path.with_name("copy.db"))
    assert not path.with_name("copy.db").exists()

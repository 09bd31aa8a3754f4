"""A question in SQL of somebody's own, asked of SQLite."""

import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from stored import ask as query

from kdx.errors import DatabaseError, KdxError
from kdx.store import claims, recording


@pytest.fixture
def filled(database, sweep_id, path) -> Path:
    """Run 1 has three rows of a curve."""
    number = claims.claim(database, 1, "me", 60)
    hand = recording.RunWriter(database, 1, "me", number)
    hand.record([("valid/bleu", 10, 1.5), ("valid/bleu", 20, math.nan), ("valid/bleu", 30, math.inf)], 30)
    return path


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def asked(path, statement) -> list:
    rows = query(path, statement)
    assert len(list(rows)) == rows.count
    return list(rows)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM metric",
        "UPDATE run SET error = 'x'",
        "INSERT INTO cell (id, spec) VALUES ('x', '{}')",
        "DROP VIEW runs",
        "CREATE TABLE mine (a)",
        "CREATE TEMP TABLE mine (a)",
        "ATTACH 'other.db' AS other",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = WAL",
        "REINDEX",
        "ANALYZE",
        "COMMIT",
        "SAVEPOINT x",
        "WITH x AS (SELECT 1) DELETE FROM metric",
        "INSERT INTO metric SELECT * FROM metric RETURNING 1",
        "SELECT load_extension('/tmp/x.so')",
    ],
)
def test_what_is_no_question_is_refused_and_changes_nothing(filled, statement):
    before = bytes_of(filled.parent)
    with pytest.raises(KdxError) as caught:
        query(filled, statement)
    assert caught.value.exit_code == 2
    assert caught.value.problem == "kdx query only reads, and this would do something else; nothing was changed"
    assert bytes_of(filled.parent) == before


@pytest.mark.parametrize(
    ("statement", "problem", "hint"),
    [
        ("SELEC 1", 'near "SELEC": syntax error', "kdx query --schema tells tables, views and columns"),
        ("SELECT * FROM rums", "no such table: rums", "did you mean `runs`?"),
        ("SELECT scor FROM runs", "no such column: scor", "kdx query --schema tells tables, views and columns"),
        ("VACUUM", "cannot VACUUM from within a transaction", None),
        ("SELECT 1; SELECT 2", "You can only execute one statement at a time.", None),
        ("SELECT 'a\0b'", None, None),
        ("SELECT '\udc80'", None, None),
        ("SELECT abs(-9223372036854775808)", "integer overflow", None),
        ("SELECT zeroblob(3000000000)", "string or blob too big", None),
    ],
)
def test_what_is_not_understood_is_told_in_one_message(filled, statement, problem, hint):
    with pytest.raises(KdxError) as caught:
        query(filled, statement)
    assert caught.value.exit_code == 2
    assert caught.value.problem.startswith("the statement is not understood: ")
    assert problem is None or caught.value.problem.endswith(problem)
    assert hint is None or caught.value.hint == hint


def test_control_c_ends_a_question_that_would_never_end(filled):
    # Whoever starts the tests in the background may have them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        query(filled, "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT count(*) FROM a")
    signal.signal(signal.SIGINT, before)


def test_a_half_transaction_of_a_killed_writer_is_undone_first(filled):
    script = (
        "import os, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA cache_size = 1')\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "connection.execute('CREATE TABLE half AS WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a "
        "LIMIT 9999) SELECT n, randomblob(100) FROM a')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(filled)])
    assert filled.with_name("runs.db-journal").stat().st_size > 0
    assert asked(filled, "SELECT count(*) FROM run") == [(4,)]


def refusal(path) -> KdxError:
    before = bytes_of(path.parent) if path.parent.exists() else {}
    with pytest.raises(DatabaseError) as caught:
        query(path, "SELECT 1")
    assert caught.value.exit_code == 3
    assert before == (bytes_of(path.parent) if path.parent.exists() else {})
    return caught.value


def test_a_database_that_is_not_here_is_told_and_none_is_made(tmp_path):
    assert refusal(tmp_path / "runs.db").problem == "there is no results database here"


def test_databases_of_others_and_other_files_are_told(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE a (b)")
    assert refusal(tmp_path / "other.db").problem == "this database belongs to another application"
    (tmp_path / "notes.txt").write_text("notes " * 100)
    assert refusal(tmp_path / "notes.txt").problem == "this file is not a database"
    (tmp_path / "empty.db").touch()
    assert refusal(tmp_path / "empty.db").problem == "this file is empty, not a results database"


def test_a_damaged_database_is_told(filled):
    content = bytearray(filled.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    filled.write_bytes(content)
    with pytest.raises(DatabaseError, match="damaged"):
        query(filled, "SELECT * FROM metric")


def test_a_file_whose_name_is_no_text_is_asked(filled, tmp_path):
    file = Path(os.fsdecode(bytes(tmp_path) + b"/\xff\n.db"))
    shutil.copy(filled, file)
    assert asked(file, "SELECT count(*) FROM run") == [(4,)]


def test_a_named_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DatabaseError, match="this is a named pipe, not a database"):
        query(tmp_path / "pipe", "SELECT 1")


def test_an_address_names_a_file_too(filled):
    assert asked(f"sqlite:///{filled}", "SELECT count(*) FROM run") == [(4,)]

"""A question in SQL of somebody's own, asked of SQLite."""

import math
import os
import signal
import threading
from pathlib import Path

import pytest
from stored import ask as query
from stored import start

from kdx.errors import KdxError


@pytest.fixture
def filled(database, sweep_id, path) -> Path:
    """Run 1 has three rows of a curve."""
    start(database).record([("valid/bleu", 10, 1.5), ("valid/bleu", 20, math.nan), ("valid/bleu", 30, math.inf)], 30)
    return path


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


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
        ("SELECT 'a\0b'", None, None),
        ("SELECT '\udc80'", None, None),
        ("SELECT abs(-9223372036854775808)", "integer overflow", None),
        ("SELECT zeroblob(3000000000)", "string or blob too big", None),
    ],
)
def test_what_is_not_understood_is_reported_in_one_message(filled, statement, problem, hint):
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

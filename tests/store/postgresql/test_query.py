"""A user's SELECT on a server: it only reads, whatever the rights of the user, and ends by Ctrl-C."""

import signal
import subprocess
import sys
import textwrap

import pytest
from stored import ask as query
from waiting import wait_until

from kdx.errors import KdxError
from kdx.store.recording import register

WRITES = (
    "DELETE FROM sweep_run",
    "WITH gone AS (DELETE FROM sweep_run RETURNING *) SELECT * FROM gone",
    "SELECT 1; DROP TABLE sweep_run",
    "SELECT * INTO copy FROM metric",
    "COPY metric TO '/tmp/metric'",
    "COPY (SELECT 1) TO PROGRAM 'touch /tmp/touched'",
    "SELECT id FROM run FOR UPDATE",
    "EXPLAIN ANALYZE DELETE FROM sweep_run",
    "SELECT nextval('run_id_seq')",
    "COMMIT",
    "SET default_transaction_read_only = off",
    "VALUES (1); COMMIT; DELETE FROM sweep_run",
    "CREATE TABLE t (x integer)",
)


@pytest.mark.parametrize("statement", WRITES)
def test_what_would_write_is_refused(address: str, database, backend, plan_of, statement: str):
    register(database, plan_of(1, 1))
    before = backend.content(address)
    with pytest.raises(KdxError) as caught:
        query(address, statement)
    assert caught.value.exit_code == 2
    refusals = ("only reads", "the statement is not understood", "these are several statements")
    assert any(refusal in caught.value.problem for refusal in refusals)
    assert backend.content(address) == before


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT 1 AS a, 2.5, true, NULL, 'x'", [(1, 2.5, 1, None, "x")]),
        ("select sum(x) from (values (1), (2)) as t (x)", [(3,)]),
        ("SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) AS t (x)", [(2**63,)]),
        ("SELECT date '2026-01-02', interval '1 day', ARRAY[1, 2]", [("2026-01-02", "1 day", "{1,2}")]),
        ("SELECT '{\"a\": 1.0}'::json, '\\x0001'::bytea", [('{"a": 1.0}', b"\x00\x01")]),
        ("SELECT 1 WHERE 'a%' LIKE '%'", [(1,)]),
        ("SELECT count(*) FROM run WHERE id = 1", [(0,)]),
        ("TABLE sweep", []),
        ("  -- of sweeps\n (SELECT 1);", [(1,)]),
    ],
)
def test_what_reads_is_answered(address: str, statement: str, expected):
    rows = query(address, statement)
    assert list(rows) == expected


def test_a_plan_is_explained(address: str):
    rows = query(address, "EXPLAIN SELECT * FROM runs")
    assert rows.count > 1


def test_a_table_is_named_that_was_meant(address: str):
    with pytest.raises(KdxError) as caught:
        query(address, "SELECT * FROM rums")
    assert caught.value.problem == 'the statement is not understood: relation "rums" does not exist'
    assert caught.value.hint == "did you mean `runs`?"


def test_an_endless_query_ends_by_ctrl_c(address: str, connected):
    code = f"""
        from kdx.store.database import open_database
        with open_database({address!r}, write=False) as database:
            print("asks", flush=True)
            database.query("SELECT count(*) FROM generate_series(1, 10000000000)")
    """
    asking = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert asking.stdout is not None and asking.stdout.readline() == b"asks\n"
    asks = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'FETCH%%' AND pid <> %s"
    with connected() as connection:

        def busy() -> int:
            return connection.execute(asks, [connection.info.backend_pid]).fetchone()[0]

        wait_until(busy)
        asking.send_signal(signal.SIGINT)
        assert asking.wait(300) in (-signal.SIGINT, 130, 1)
        wait_until(lambda: not busy())
    asking.stdout.close()

"""Transactions whose connection is lost, at every statement of every write of an attempt; nothing is done twice."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from sqlalchemy import select
from stored import WRITES, lapse, record, rows, start
from waiting import wait_until

from kdx.errors import DatabaseError
from kdx.store import claims, evaluations, reading, recording
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunState
from kdx.store.refusals import TransactionLostError
from kdx.store.schema import attempt, environment, evaluation, evaluation_metric, metric, output, run, test_document

TABLES = (run, attempt, metric, output, environment, evaluation, evaluation_metric, test_document)


@dataclass
class Cut:
    """Cuts the connection at one point of a transaction, once."""

    at: str
    """`before` a commit, or `after` it, when nobody learns that it stands."""
    done: int = 0
    commits: list[str] = field(default_factory=list)

    def commit(self, connection: Any) -> None:
        if connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            return
        if self.done:
            connection.execute("COMMIT")
            return
        self.done += 1
        if self.at == "after":
            connection.execute("COMMIT")
        with psycopg.connect(**connection.info.get_parameters(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])
        connection.execute("COMMIT")


@contextmanager
def cut(monkeypatch: pytest.MonkeyPatch, at: str) -> Iterator[Cut]:
    found = Cut(at)
    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "commit", lambda self: found.commit(self))
        yield found


LEASED: dict[str, Callable[[RunWriter], Any]] = {
    **WRITES,
    "renew": lambda writer: claims.renew(writer.database, writer.owner, 60),
    "abandon": lambda writer: claims.abandon(writer.database, writer.run_id, writer.owner, writer.attempt, "gone"),
}
_TIMES = frozenset({"lease_until", "started", "ended", "made", "writes"})
"""Columns that differ between two times of writing; `metric.writes` counts them."""


def content(database: Database) -> dict[str, list[dict[str, Any]]]:
    return {
        table.name: [
            {name: str(value) for name, value in row._mapping.items() if name not in _TIMES}
            for row in rows(database, table)
        ]
        for table in TABLES
    }


@pytest.mark.parametrize("at", ["before", "after"])
@pytest.mark.parametrize("name", LEASED)
def test_a_write_whose_connection_is_lost_stands_once(database: Database, plan_of, monkeypatch, name: str, at: str):
    recording.register(database, plan_of(1, 2))
    first, second = (row.id for row in rows(database, run))
    write = LEASED[name]
    lost, whole = start(database, first), start(database, second)
    with cut(monkeypatch, at) as counted:
        write(lost)
    assert counted.done == 1
    write(whole)
    found = content(database)
    for table in TABLES:
        mine, other = (
            [
                {key: value for key, value in row.items() if key not in ("id", "seed", "run_id")}
                for row in found[table.name]
                if row.get("run_id", row.get("id")) == str(run_id)
            ]
            for run_id in (first, second)
        )
        assert mine == other, table.name


@pytest.mark.parametrize("at", ["before", "after"])
def test_a_claim_whose_connection_is_lost_is_one_claim(database: Database, sweep_id: int, monkeypatch, at: str):
    with cut(monkeypatch, at) as counted:
        assert claims.claim(database, 1, "me", 60) == 1
    assert counted.done == 1
    assert [row.number for row in rows(database, attempt)] == [1]
    assert claims.claim(database, 1, "me", 60) is None
    lapse(database)
    with cut(monkeypatch, at):
        assert claims.claim(database, 1, "other", 60) == 2
    assert [row.outcome for row in rows(database, attempt)] == ["lost", None]


@pytest.mark.parametrize("at", ["before", "after"])
def test_an_evaluation_whose_connection_is_lost_is_recorded_once(
    database: Database, sweep_id: int, monkeypatch, at: str
):
    start(database).complete(1.0, 4, 2.0, {}, 4)
    made = evaluations.EvaluationResult("a" * 32, {"length": 9}, None, environment={"cpu": "x"}, metrics={"bleu": 3.0})
    with cut(monkeypatch, at) as counted:
        evaluations.record(database, 1, made)
    assert counted.done == 1
    assert [row.value for row in rows(database, evaluation_metric)] == [3.0]


def test_a_run_that_was_cancelled_while_its_connection_was_lost_is_fenced(
    database: Database, address: str, sweep_id: int, monkeypatch
):
    writer = start(database)
    cancel = claims.cancel

    def commit(connection: Any) -> None:
        if connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            patched.undo()
            connection.execute("ROLLBACK")
            with open_database(address, write=True) as other:
                cancel(other, [1])
            raise psycopg.OperationalError("the connection is lost")

    patched = pytest.MonkeyPatch()
    patched.setattr(psycopg.Connection, "commit", commit)
    with pytest.raises(claims.Fenced):
        writer.complete(1.0, 4, 2.0, {}, 4)
    assert record(database).state is RunState.CANCELLED


def test_a_transaction_of_a_user_that_is_lost_is_reported_and_nothing_stands(database: Database, connected):
    lost = pytest.raises(TransactionLostError, match="the connection to the server was lost")
    with connected() as other, lost, database.write() as connection:
        pid = connection.connection.driver_connection.info.backend_pid
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        connection.scalar(select(run.c.id))
    assert reading.sweeps(database) == ()


def test_no_connection_is_held_outside_of_transactions(database: Database, sweep_id: int, connected):
    writer = start(database)
    writer.record([("valid/bleu", 2, 1.5)], 2)
    with connected() as other:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        wait_until(lambda: other.execute(others).fetchone() == (0,))  # a session ends a moment after its client


def test_attempts_write_beside_each_other_and_never_beside_who_writes_alone(database: Database, address: str, sweep_id):
    first, second = start(database, 1), start(database, 2)
    # Whoever waited for the first would wait for ever.
    with first.holding():
        second.record([("valid/bleu", 2, 1.5)], 2)
        assert claims.claim(database, 3, "me", 60) == 1
        with open_database(address, write=False) as reader:
            assert reading.load_run(reader, 2).progress_step == 2
    with open_database(address, write=True) as impatient, database.write():
        impatient.patience = 0.1
        with pytest.raises(DatabaseError, match="locked"):
            RunWriter(impatient, 1, "me", 1).record([("valid/bleu", 2, 1.5)], 2)


def test_who_claims_does_not_wait_for_another_who_claims(database: Database, address: str, sweep_id: int):
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with open_database(address, write=True) as other, other.write(alone=False) as connection:
            connection.scalar(select(run.c.id).where(run.c.id == 1).with_for_update())
            held.set()
            done.wait(300)

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        held.wait(300)
        assert claims.claim(database, 1, "me", 60) is None
        assert not holding.done(), "it did not wait for the other's end"
        done.set()
        holding.result()
    assert claims.claim(database, 1, "me", 60) == 1

"""What tests of the store write, read and refuse in common."""

import hashlib
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from kdx.errors import DatabaseError
from kdx.store import claims, reading
from kdx.store.backend import Rows
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunRecord, RunState
from kdx.store.schema import cell, run

CELL = "c" * 32


def pragma(database: Database, name: str) -> object:
    with database.read() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()


def spoil(path: Path, *statements: str) -> None:
    """As another program might, which knows nothing of foreign keys."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def add_cell(database: Database, name: str = CELL, size: int = 2) -> None:
    with database.write() as connection:
        connection.execute(insert(cell).values(id=name, spec="x" * size))


def cells(database: Database) -> list[str]:
    with database.read() as connection:
        return list(connection.scalars(select(cell.c.id).order_by(cell.c.id)))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refusal(address: str | Path, **options: bool) -> str:
    """The message with which opening is refused."""
    with pytest.raises(DatabaseError) as caught:
        open_database(address, **{"write": False, **options})
    assert caught.value.exit_code == 3
    return str(caught.value)


def ask(address: str | Path, statement: str) -> Rows:
    """The rows of a user's SELECT."""
    with open_database(address, write=False) as database:
        return database.query(statement)


def rows(database: Database, table: Any) -> list[Any]:
    with database.read() as connection:
        return list(connection.execute(select(table).order_by(*table.primary_key)).all())


def record(database: Database, run_id: int = 1) -> RunRecord:
    return next(each for each in reading.runs(database, 1) if each.id == run_id)


def state(database: Database, run_id: int = 1) -> RunState:
    return record(database, run_id).state


def lapse(database: Database, run_id: int = 1, seconds: float = 10) -> None:
    """As if so many seconds had passed since the lease ended."""
    with database.write() as connection:
        connection.execute(update(run).where(run.c.id == run_id).values(lease_until=time.time() - seconds))


def start(database: Database, run_id: int = 1, owner: str = "me") -> RunWriter:
    number = claims.claim(database, run_id, owner, 60)
    assert number is not None
    return RunWriter(database, run_id, owner, number)


def run_that_ended(number: int, state: RunState, score: float | None) -> RunRecord:
    return RunRecord(number, "0" * 32, number, state=state, attempt=1, progress_step=7, valid_score=score)


WRITES: dict[str, Callable[[RunWriter], object]] = {
    "begin": lambda writer: writer.begin({"cpu": "x"}, "data", "code", data_facts={"vocabulary_size": 9}),
    "checkpoint": lambda writer: writer.checkpoint(4),
    "record": lambda writer: writer.record([("valid/bleu", 2, 1.5), ("valid/bleu", 4, float("nan"))], 4),
    "outputs": lambda writer: writer.outputs("test/translations", ["a", "b"]),
    "documents": lambda writer: writer.documents("article", {"targets": [1], "nats": [0.5]}),
    "complete": lambda writer: writer.complete(1.0, 4, 2.0, {}, 4),
    "diverge": lambda writer: writer.diverge("NaN", 4),
    "prune": lambda writer: writer.prune("worse", 4),
    "interrupt": lambda writer: writer.interrupt(4),
    "fail": lambda writer: writer.fail("error", "trace", 4),
}
"""All that an attempt writes."""

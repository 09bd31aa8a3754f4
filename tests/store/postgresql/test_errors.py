"""Errors of the server, each as one of kdx with the place and what to do."""

import psycopg
import pytest
from sqlalchemy import insert

from kdx.errors import DatabaseError, StorageError
from kdx.store.postgresql.address import address_of
from kdx.store.postgresql.errors import translate
from kdx.store.refusals import DamagedDatabaseError, TransactionLostError
from kdx.store.schema import sweep

ADDRESS = address_of("postgresql://me:secret@host/runs")


@pytest.mark.parametrize(
    ("kind", "expected", "words"),
    [
        (psycopg.errors.DiskFull, StorageError, "the server failed"),
        (psycopg.errors.IoError, StorageError, "the server failed"),
        (psycopg.errors.OutOfMemory, StorageError, "the server failed"),
        (psycopg.errors.AdminShutdown, TransactionLostError, "the connection to the server was lost"),
        (psycopg.errors.DeadlockDetected, TransactionLostError, "the connection to the server was lost"),
        (psycopg.errors.ReadOnlySqlTransaction, DatabaseError, "the server only reads"),
        (psycopg.errors.InsufficientPrivilege, DatabaseError, "no permission"),
        (psycopg.errors.DataCorrupted, DamagedDatabaseError, "the database is damaged"),
        (psycopg.errors.TransactionTimeout, TransactionLostError, "the connection to the server was lost"),
        (psycopg.errors.QueryCanceled, DatabaseError, "longer than its statement_timeout"),
        (psycopg.errors.LockNotAvailable, DatabaseError, "locked for 7 s"),
        (psycopg.OperationalError, TransactionLostError, "the connection to the server was lost"),
    ],
)
def test_an_error_has_its_place_and_what_to_do(kind, expected, words):
    found = translate(kind("it happened"), ADDRESS, 7)
    assert type(found) is expected and words in found.problem
    assert found.place == "postgresql://me:***@host/runs" and found.hint
    assert found.exit_code == (74 if expected is StorageError else 3)


@pytest.mark.parametrize("kind", [psycopg.errors.SyntaxError, psycopg.ProgrammingError, psycopg.InterfaceError])
def test_a_fault_of_kdx_stays_what_it_is(kind):
    assert translate(kind("it happened"), ADDRESS, 7) is None


def test_a_server_that_was_set_to_read_is_reported(database, address: str, connected, postgresql_server):
    name = address.rpartition("/")[2]
    postgresql_server.execute(f"ALTER ROLE kdx IN DATABASE {name} SET default_transaction_read_only = on")
    # A transaction of kdx says itself that it writes.
    with database.write() as connection:
        connection.execute(insert(sweep).values(name="demo", created=0, updated=0, grid={}))

"""Opens a results database.

`open_database` creates or refuses a database; it never touches one of another application or of another schema.

A transaction waits for those of other processes: `BUSY_SECONDS` while opening, so that a user at a terminal soon sees
an error, and `PATIENT_SECONDS` once a database is open to write, or while a worker opens it, so that a sweep survives a
program that locks the database for a while.
"""

import re
from pathlib import Path

from sqlalchemy import Connection, select

from kdx.errors import DatabaseError, installed_by
from kdx.store import schema
from kdx.store.backend import Database
from kdx.store.refusals import ADDRESSES, OTHER_DATABASE, another_application, without_password
from kdx.store.sqlite.database import Sqlite

__all__ = ["BUSY_SECONDS", "PATIENT_SECONDS", "Database", "database_at", "open_database"]

BUSY_SECONDS = 30
"""Seconds that a transaction waits for others while a database is opened, or if it is only read."""

PATIENT_SECONDS = 600
"""Seconds that a transaction waits in a database that is open to write."""


def database_at(address: str | Path, *, write: bool = False) -> Database:
    """The database of an address, neither opened nor changed; an address without a scheme is a file of SQLite.

    Raises:
        DatabaseError: the address is invalid, or kdx does not open such databases.
    """
    if isinstance(address, Path) or "://" not in address:
        return Sqlite(address, write=write)
    scheme = re.match(r"([A-Za-z][\w.-]*)(?:\+[\w.-]+)?://", address, re.ASCII)
    if scheme is None:
        raise DatabaseError("this is not a database URL", place=without_password(address), allowed=ADDRESSES)
    if scheme[1] == "sqlite":
        return Sqlite(address, write=write)
    if scheme[1] != "postgresql":
        raise DatabaseError(f"kdx does not open {scheme[1]}", place=without_password(address), allowed=ADDRESSES)
    try:
        # late: its driver is an extra
        from kdx.store.postgresql.database import Postgresql
    except ModuleNotFoundError as missing:
        raise DatabaseError(
            f"the driver of PostgreSQL is not installed ({missing})",
            place=without_password(address),
            hint=installed_by("postgres"),
        ) from missing
    return Postgresql(address, write=write)


def open_database(address: str | Path, *, write: bool, create: bool = False, patient: bool = False) -> Database:
    """Open a results database.

    Args:
        address: a file, or an SQLAlchemy URL such as `sqlite:///runs.db`, see `kdx.store.refusals.ADDRESSES`.
        write: without it nothing is written, with one exception: the half transaction of a killed writer is undone,
            where that is permitted.
        create: creates the database where there is none.
        patient: opening too waits `PATIENT_SECONDS` for other processes, since no user is waiting.

    Raises:
        DatabaseError: the database is absent, unreadable, of another application, or of another schema; or it is to be
            written, and is not writable, is locked by another process, or its locks cannot be trusted. Nothing was
            changed.
        StorageError: the disk is full or failed.
    """
    assert write or not create
    # The first look writes nothing.
    with database_at(address) as before:
        _wait(before, patient)
        before.prepare(write=write, create=create)
        with before.read() as connection:
            empty = _is_new(connection, before)
    if empty and not create:
        raise DatabaseError(
            "there is nothing in it, so it is no results database", place=before.name, hint=OTHER_DATABASE
        )
    database = database_at(address, write=write)
    _wait(database, patient)
    try:
        if empty:
            with database.write() as connection:
                # Another process may have been first.
                if _is_new(connection, database):
                    schema.create(connection, database.statements)
        with database.write() if write else database.read() as connection:
            database.id = connection.scalar(select(schema.identity.c.id))
            if database.id is None:
                raise another_application(database.name)
            # One that is locked or cannot be reached has raised an error by now; from here on there is time.
            database.reconnects = True
            if write:
                if database.views.items() - database.recorded_views(connection).items():
                    database.make_views(connection)
                database.patience = PATIENT_SECONDS
    except BaseException:
        database.close()
        raise
    return database


def _is_new(connection: Connection, database: Database) -> bool:
    """Return whether a database is empty.

    Raises:
        DatabaseError: it has no tables of kdx, or those of another schema, or what could act in their place.
    """
    tables = database.objects(connection)
    if not tables:
        return True
    if schema.VERSION_TABLE not in tables:
        raise another_application(database.name)
    recorded = connection.exec_driver_sql(f"SELECT revision FROM {schema.VERSION_TABLE}").scalars().all()
    if len(recorded) != 1 or not re.fullmatch(r"\d{4}", str(recorded[0]), re.ASCII):
        raise another_application(database.name)
    if recorded[0] != schema.REVISION:
        raise DatabaseError(
            f"written by another version of kdx: its schema is {recorded[0]}, this kdx knows {schema.REVISION};"
            " nothing was changed",
            place=database.name,
            hint="use the kdx that wrote it",
        )
    return False


def _wait(database: Database, patient: bool) -> None:
    database.patience = PATIENT_SECONDS if patient else BUSY_SECONDS
    database.reconnects = patient

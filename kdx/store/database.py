"""Opens a results database.

`open_database` creates, migrates or refuses a database; it never touches one of another application or of a newer kdx,
and it copies a database before it migrates it.

A transaction waits for those of other processes: `BUSY_SECONDS` while opening, so that a user at a terminal soon sees
an error, and `PATIENT_SECONDS` once a database is open to write, or while a worker opens it, so that a sweep survives a
program that locks the database for a while.
"""

import re
from pathlib import Path

from sqlalchemy import select

from kdx.errors import DatabaseError
from kdx.shell import shell_word
from kdx.store.backend import Database
from kdx.store.migrating import migrate, revision_of
from kdx.store.refusals import ADDRESSES, OTHER_DATABASE, another_application, without_password
from kdx.store.schema import identity
from kdx.store.sqlite.database import Sqlite
from kdx.store.version import REVISION

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
            hint="pip install 'kdx[postgres]'",
        ) from missing
    return Postgresql(address, write=write)


def open_database(
    address: str | Path, *, write: bool, create: bool = False, patient: bool = False, upgrade: bool = True
) -> Database:
    """Opens a results database, and migrates it to the newest schema if it is opened to write.

    An older database is copied before; a copy of a file lies beside it, with the name of the new schema, such as
    `runs.db.before-0002.bak`.

    Args:
        address: a file, or an SQLAlchemy URL such as `sqlite:///runs.db`, see `kdx.store.refusals.ADDRESSES`.
        write: without it nothing is written, with one exception: the half transaction of a killed writer is undone,
            where that is permitted.
        create: creates the database where there is none.
        upgrade: without it an older database is refused, even if it is to be written.
        patient: opening too waits `PATIENT_SECONDS` for other processes, since no user is waiting.

    Raises:
        DatabaseError: the database is absent, unreadable, of another application, or of a schema that does not fit; or
            it is to be written, and is not writable, is locked by another process, or its locks cannot be trusted.
            Nothing was changed.
        StorageError: the disk is full or failed.
    """
    assert write or not create
    # The first look writes nothing.
    with database_at(address) as before:
        _wait(before, patient)
        before.prepare(write=write, create=create)
        with before.read() as connection:
            revision = revision_of(connection, before)
    if revision is None and not create:
        raise DatabaseError(
            "there is nothing in it, so it is no results database", place=before.name, hint=OTHER_DATABASE
        )
    if revision not in (None, REVISION) and not (write and upgrade):
        raise DatabaseError(
            f"written by an older kdx: its schema is {revision}, this kdx reads {REVISION}",
            place=before.name,
            hint=f"kdx db upgrade --db {shell_word(before.name)} brings it up to date"
            + (", and keeps a copy" if before.keeps_copies else "; copy it before"),
        )
    database = database_at(address, write=write)
    _wait(database, patient)
    try:
        if revision != REVISION:
            database.upgraded_from = revision
            with database.translate_errors():
                database.backup = migrate(database)
        with database.write() if write else database.read() as connection:
            database.id = connection.scalar(select(identity.c.id))
            if database.id is None:
                raise another_application(database.name)
            # One that is locked or cannot be reached has raised an error by now; from here on there is time.
            database.reconnects = True
            if write:
                database.patience = PATIENT_SECONDS
    except BaseException:
        database.close()
        raise
    return database


def _wait(database: Database, patient: bool) -> None:
    database.patience = PATIENT_SECONDS if patient else BUSY_SECONDS
    database.reconnects = patient

"""Opens a results database and runs its transactions.

Opening creates, migrates or refuses a database; it never touches one of another application or of a newer kdx, and it
copies a database before it migrates it. A fault of a database is raised as a `DatabaseError`, and a full or failing
disk as a `StorageError`, also from inside a transaction. The backend does what depends on the kind of database.

A transaction waits for those of other processes: `BUSY_SECONDS` while opening, so that a user at a terminal soon sees
an error, and `PATIENT_SECONDS` once a database is open to write, or while a worker opens it, so that a sweep survives a
program that locks the database for a while.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from sqlalchemy import Connection, select

from kdx.errors import DatabaseError
from kdx.shell import shell_word
from kdx.store.backend import OTHER_DATABASE, Backend, TransactionLostError, another_application
from kdx.store.backends import backend_of
from kdx.store.columns import UnexpectedValueError
from kdx.store.migrating import migrate, revision_of
from kdx.store.schema import identity
from kdx.store.version import REVISION

BUSY_SECONDS = 30
"""Seconds that a transaction waits for others while a database is opened, or if it is only read."""

PATIENT_SECONDS = 600
"""Seconds that a transaction waits in a database that is open to write."""


_T = TypeVar("_T")


class Database:
    """An open results database; `open_database` makes one.

    Threads may share a Database, processes may not: open a new one after a fork, which carries no connection across.
    """

    def __init__(self, backend: Backend, patience: float) -> None:
        self.backend = backend
        self.upgraded_from: str | None = None
        """The schema that the database had before opening migrated it; None: it was not migrated."""
        self.backup: Path | None = None
        """The copy that opening made before it migrated."""
        self.patience = patience
        self._reading = threading.local()

    @property
    def name(self) -> str:
        """The name in messages."""
        return self.backend.name

    @property
    def file(self) -> Path | None:
        """The file that the database is; None: it is on a server."""
        return self.backend.file

    @property
    def location(self) -> Path:
        """The path beside which the folder of run files lies, and after which it is named."""
        return self.backend.location

    @property
    def id(self) -> str | None:
        """The random id that the database got when it was created; None until it is known."""
        return self.backend.id

    @property
    def patience(self) -> float:
        """Seconds that a transaction waits for those of other processes."""
        return self.backend.patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self.backend.patience = seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Releases the database."""
        self.backend.close()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One transaction that sees one state of the database. Keep it short: writers may wait for it.

        Nested in another one of the same thread it is the same transaction, so that several queries can see one state.
        """
        open_already: Connection | None = getattr(self._reading, "connection", None)
        if open_already is not None:
            yield open_already
            return
        with self.translate_errors(), self.backend.reading.begin() as connection:
            self._reading.connection = connection
            try:
                yield connection
            finally:
                self._reading.connection = None

    @contextmanager
    def write(self, *, alone: bool = True) -> Iterator[Connection]:
        """One transaction that holds the write lock from its start; committed at the end, rolled back on an exception.

        Args:
            alone: whether no other transaction writes meanwhile. Without it the database may run other such
                transactions beside this one, so that a thousand workers do not wait for each other; see
                `kdx.store.backend.Backend.writing_beside`.

        Raises:
            TransactionLostError: the connection was lost; see `persist`.
            DatabaseError: the database cannot be written, is damaged, is no longer the one that was opened, or stayed
                locked all the while that `patience` gives.
            StorageError: the disk is full or failed; nothing of this transaction stands.
        """
        assert self.backend.writable, "opened to read"
        engine = self.backend.writing if alone else self.backend.writing_beside
        with self.translate_errors(), engine.begin() as connection:
            yield connection

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Lets the transactions of this thread that follow each other here take turns on one connection.

        Where connecting takes longer than a transaction they are faster so. Keep it short, as a transaction, and call
        `disconnect` before what takes long: a server has a hundred connections for all processes.
        """
        with self.backend.connected():
            yield

    def disconnect(self) -> None:
        """Closes the connection that `connected` keeps; the next transaction makes another."""
        self.backend.disconnect()

    def persist(self, transaction: Callable[[], _T]) -> _T:
        """What a transaction returns, which is done again for `patience` seconds while its connection is lost.

        When a connection is lost at a commit, nobody can know whether the transaction stands. So it must do no harm
        when it is done twice.
        """
        # The enclosing transaction is lost too, and cannot be done again from here.
        within = getattr(self._reading, "connection", None) is not None
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return transaction()
            except TransactionLostError:
                if within or time.monotonic() > deadline:
                    raise
            # Not all at once, where a server ended the transactions of many.
            time.sleep(random.uniform(0.05, 0.5))

    def back_up(self, target: Path) -> None:
        """Copies one state of the database to a new file; see `kdx.store.backend.Backend.back_up`."""
        with self.translate_errors():
            self.backend.back_up(target)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raises faults of the database, and of the values in it, as a `DatabaseError` or a `StorageError`."""
        try:
            yield
        except UnexpectedValueError as error:
            raise DatabaseError(
                f"{error.column} is {error.value}, which kdx never writes there",
                place=self.name,
                allowed=error.allowed,
                hint="somebody edited the database or made it up; kdx db check tells every such row",
            ) from error
        except Exception as error:
            translated = self.backend.translate(error)
            if translated is None:
                raise
            raise translated from error


def open_database(
    address: str | Path, *, write: bool, create: bool = False, patient: bool = False, upgrade: bool = True
) -> Database:
    """Opens a results database, and migrates it to the newest schema if it is opened to write.

    An older database is copied before; a copy of a file lies beside it, with the name of the new schema, such as
    `runs.db.before-0002.bak`.

    Args:
        address: a file, or an SQLAlchemy URL such as `sqlite:///runs.db`, see `kdx.store.backend.ADDRESSES`.
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
    patience = PATIENT_SECONDS if patient else BUSY_SECONDS
    # The first look writes nothing.
    with Database(backend_of(address), patience) as before:
        before.backend.reconnects = patient
        before.backend.prepare(write=write, create=create)
        with before.read() as connection:
            revision = revision_of(connection, before.backend)
    if revision is None and not create:
        raise DatabaseError(
            "there is nothing in it, so it is no results database", place=before.name, hint=OTHER_DATABASE
        )
    if revision not in (None, REVISION) and not (write and upgrade):
        raise DatabaseError(
            f"written by an older kdx: its schema is {revision}, this kdx reads {REVISION}",
            place=before.name,
            hint=f"kdx db upgrade --db {shell_word(before.name)} brings it up to date"
            + (", and keeps a copy" if before.backend.keeps_copies else "; copy it before"),
        )
    database = Database(backend_of(address, write=write), patience)
    database.backend.reconnects = patient
    try:
        if revision != REVISION:
            database.upgraded_from = revision
            with database.translate_errors():
                database.backup = migrate(database.backend)
        with database.write() if write else database.read() as connection:
            database.backend.id = connection.scalar(select(identity.c.id))
            if database.id is None:
                raise another_application(database.name)
            # One that is locked or cannot be reached has raised an error by now; from here on there is time.
            database.backend.reconnects = True
            if write:
                database.patience = PATIENT_SECONDS
    except BaseException:
        database.close()
        raise
    return database


def id_of(address: str | Path) -> str | None:
    """The id of a database that another process may be writing; None where no id can be read.

    It takes no lock and touches nothing.
    """
    return backend_of(address).peek_id()

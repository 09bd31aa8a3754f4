"""A results database of whatever kind: its transactions, and what the subclass for each kind has to give.

A fault of a database is raised as a `DatabaseError`, and a full or failing disk as a `StorageError`, also from inside a
transaction. What depends on the kind of database is in `kdx.store.sqlite` and `kdx.store.postgresql`, and nowhere else.
"""

import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from platformdirs import user_data_path
from sqlalchemy import ColumnElement, Connection, Engine, Executable, Table, event, text

from kdx.errors import KdxError
from kdx.store.json_object import UnexpectedJsonError
from kdx.store.refusals import FILES, TransactionLostError, edited
from kdx.store.views import VIEWS, Dialect

_MODE = "kdx_mode"

_T = TypeVar("_T")


@dataclass(frozen=True)
class Rows:
    """The rows of an answer."""

    columns: tuple[str, ...]
    """Names of the columns, made unique."""
    values: Sequence[tuple[Any, ...]]

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.values)


class Mode(Enum):
    """The kinds of transactions."""

    READ = "read"
    """It sees one state of the database."""
    WRITE = "write"
    """It runs while no other transaction writes, over all processes."""
    WRITE_BESIDE = "write beside"
    """It runs beside others of its kind where the database can; locks of rows keep them apart."""


class Database(ABC):
    """A results database; `kdx.store.database.open_database` opens one. Making one neither opens nor changes anything.

    Threads may share a Database, processes may not: open a new one after a fork, which carries no connection across.

    A subclass gives the abstract methods. They let errors of the driver pass, which `translate_errors` turns into
    messages, and raise a `DatabaseError` or a `StorageError` of their own where they say so.
    """

    statements: ClassVar[Sequence[str]]
    """Make the trigger that keeps runs in their final state, and whatever else is made once."""
    dialect: ClassVar[Dialect]
    """What views say in other words here."""
    insert: ClassVar[Callable[..., Any]]
    """Make an INSERT with `on_conflict_do_nothing` and `on_conflict_do_update`."""

    def __init__(self, name: str, *, write: bool) -> None:
        self.name = name
        """The name in messages: the address as it was given, without a password."""
        self.file: Path | None = None
        """The file that the database is; None: it is on a server."""
        self.writable = write
        self.patience = 0.0
        """Seconds that a transaction waits for those of other processes."""
        self.reconnects = False
        """Whether a transaction waits as long for a server that cannot be reached, since it was there before."""
        self.id: str | None = None
        """The random id that the database got when it was made. Once it is known, a transaction begins in no other."""
        self._here = threading.local()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release the database."""
        self.disconnect()

    @property
    def location(self) -> Path:
        """The path beside which the folder of run files lies, and after which it is named; the same for every process.

        It is in the folder that KDX_FILES names, or else the file itself, or in a folder of this machine. There is
        nothing at a path that is named after the id of the database, which is known once it is open.
        """
        folder = os.environ.get(FILES)
        if not folder and self.file is not None:
            return self.file
        return (Path(folder).expanduser() if folder else user_data_path("kdx") / "runs") / f"{self.id or 'unknown'}.db"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One transaction that sees one state of the database. Keep it short: writers may wait for it.

        Nested in another one of the same thread it is the same transaction, so that several queries can see one state.
        """
        open_already: Connection | None = getattr(self._here, "reading", None)
        if open_already is not None:
            yield open_already
            return
        with self._transaction(Mode.READ) as connection:
            self._here.reading = connection
            try:
                yield connection
            finally:
                self._here.reading = None

    def write(self, *, alone: bool = True) -> AbstractContextManager[Connection]:
        """One transaction that holds the write lock from its start; committed at the end, rolled back on an exception.

        A committed transaction survives a power cut. Signals are handled while it waits for others.

        Args:
            alone: whether no other transaction writes meanwhile. Without it the database may run other such
                transactions beside this one, so that a thousand workers do not wait for each other. Locks of rows alone
                keep them apart, so each begins by locking the row that decides whether it may write.

        Raises:
            TransactionLostError: the connection was lost; see `persist`.
            DatabaseError: the database cannot be written, is damaged, is no longer the one that was opened, or stayed
                locked all the while that `patience` gives.
            StorageError: the disk is full or failed; nothing of this transaction stands.
        """
        assert self.writable, "opened to read"
        return self._transaction(Mode.WRITE if alone else Mode.WRITE_BESIDE)

    @contextmanager
    def _transaction(self, mode: Mode) -> Iterator[Connection]:
        with self.translate_errors(), self._engine.execution_options(**{_MODE: mode}).begin() as connection:
            yield connection

    @cached_property
    def _engine(self) -> Engine:
        engine = self._make_engine()

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            self._begin(driver_of(connection), connection.get_execution_options()[_MODE])

        return engine

    @abstractmethod
    def _make_engine(self) -> Engine:
        """An engine each of whose transactions has a connection of its own."""

    @abstractmethod
    def _begin(self, driver: Any, mode: Mode) -> None:
        """Begin a transaction of the driver; raises DatabaseError if this is no longer the database of this id."""

    def connected(self) -> AbstractContextManager[None]:
        """Let the transactions of this thread that follow each other here take turns on one connection.

        Where connecting takes longer than a transaction they are faster so. Keep it short, as a transaction, and call
        `disconnect` before what takes long: a server has a hundred connections for all processes.
        """
        return nullcontext()

    def disconnect(self) -> None:
        """Close the connection that `connected` keeps; the next transaction makes another."""
        if "_engine" in self.__dict__:
            self._engine.pool.dispose()

    def persist(self, transaction: Callable[[], _T], *, again: Callable[[], _T] | None = None) -> _T:
        """Return what a transaction returns, which is done again for `patience` seconds while its connection is lost.

        When a connection is lost at a commit, nobody can know whether the transaction stands. So it must do no harm
        when it is done twice.

        Args:
            again: what to do from the second time on, if it differs.
        """
        # The enclosing transaction is lost too, and cannot be done again from here.
        within = getattr(self._here, "reading", None) is not None
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return transaction()
            except TransactionLostError:
                if within or time.monotonic() > deadline:
                    raise
            transaction = again or transaction
            # Not all at once, where a server ended the transactions of many.
            time.sleep(random.uniform(0.05, 0.5))

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise faults of the database as a `DatabaseError` or a `StorageError`."""
        try:
            yield
        except UnexpectedJsonError as error:
            raise edited(self.name, str(error)) from error
        except Exception as error:
            # SQLAlchemy keeps the driver's error in `orig`.
            translated = self._translate(getattr(error, "orig", None) or error)
            if translated is None:
                raise
            raise translated from error

    def upsert(
        self, table: Table, key: Sequence[str], changed: Iterable[str], where: ColumnElement[bool] | None = None
    ) -> Any:
        """Return an INSERT that changes these columns where a row with the same key is there.

        Args:
            where: changes only rows for which this holds.
        """
        added = self.insert(table)
        values = {name: added.excluded[name] for name in changed}
        return added.on_conflict_do_update(index_elements=list(key), set_=values, where=where)

    @abstractmethod
    def _translate(self, error: BaseException) -> KdxError | None:
        """The error of kdx for an error of the driver; None for any other error."""

    def query(self, statement: str) -> Rows:
        """The rows of one SELECT of a user, in a transaction that can only read: numbers, texts, bytes or None.

        Ctrl-C ends it. All rows are read, so that a user who looks at them slowly, as in a pager, blocks no sweep.

        Raises:
            KdxError: the statement is not understood, or is anything but a SELECT.
        """
        with self.read() as connection:
            return self._answer(driver_of(connection), statement)

    @abstractmethod
    def _answer(self, driver: Any, statement: str) -> Rows:
        """The rows of one SELECT of a user, see `query`."""

    def rows(self, statement: str, values: Mapping[str, Any]) -> Rows:
        """The rows of one of kdx's own SELECTs.

        Args:
            values: parameter `:name` in the statement → value.
        """
        with self.read() as connection:
            return fetched(connection.execute(text(statement), values).cursor)

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is anything at the address; `prepare` checks what it is.

        Raises:
            DatabaseError: nobody can tell, since the server cannot be used.
        """

    @abstractmethod
    def prepare(self, *, write: bool, create: bool) -> None:
        """Refuse a database that cannot be opened in this way, before anything is touched, or creates an empty one.

        Args:
            write: whether the database is going to be written.
            create: whether to create a database where there is none.

        Raises:
            DatabaseError: the database is absent, out of reach, of another application, or unsafe to open in this way.
            StorageError: it cannot be created.
        """

    @abstractmethod
    def objects(self, connection: Connection) -> Collection[str]:
        """The names of all tables, views and the like; none in a new database.

        Raises:
            DatabaseError: an object could answer or act in place of one of kdx, such as a view or a trigger.
        """

    @cached_property
    def views(self) -> Mapping[str, str]:
        """View → the statement that makes it."""
        return {view.name: view.statement(self.dialect) for view in VIEWS}

    @abstractmethod
    def recorded_views(self, connection: Connection) -> Mapping[str, str]:
        """View in the database → the statement that made it."""

    def make_views(self, connection: Connection) -> None:
        """Make the views of this kdx, in the place of any others under their names: views are no data."""
        for name, statement in self.views.items():
            connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
            connection.exec_driver_sql(statement)

    @abstractmethod
    def back_up(self, target: Path) -> None:
        """Copy one state of the database to a new file, which has its name only when it is whole.

        Others may read and write meanwhile; what they commit may wait for the copy.

        Raises:
            KdxError: there is a file of that name, or none can have it; or kdx copies no databases of this kind.
            StorageError: it cannot be written.
            DamagedDatabaseError: the database is damaged, and so would be the copy.
        """

    @abstractmethod
    def faults(self, connection: Connection, most: int) -> Iterator[str]:
        """Descriptions of what the database itself finds wrong with its tables; at most `most` of a kind."""

    @property
    @abstractmethod
    def recovery(self) -> str:
        """A shell command that saves what is left of a damaged database."""

    @abstractmethod
    def software(self) -> tuple[str, str]:
        """Name and version of the program that keeps the database."""

    @abstractmethod
    def url(self) -> tuple[str, Mapping[str, Any]]:
        """SQLAlchemy's address, and arguments of its engine, for a library that keeps tables of its own beside ours.

        The address has the password in it, so it must not be shown.
        """

    @staticmethod
    @abstractmethod
    def field(column: str, path: str) -> str:
        """SQL that reads one field, such as `training.steps`, of a column with JSON, as a user would type it."""


def insert_rows(connection: Connection, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Execute an INSERT for each row; without rows, nothing, where SQLAlchemy would insert a row of defaults."""
    if rows:
        connection.execute(statement, rows)


def driver_of(connection: Connection) -> Any:
    """The driver's connection."""
    return connection.connection.driver_connection


def fetched(cursor: Any) -> Rows:
    """Return all remaining rows of a driver's cursor; of columns with one name the second is called `name:2`."""
    counts: Counter[str] = Counter()
    columns: list[str] = []
    for name, *_ in cursor.description or ():
        counts[name] += 1
        columns.append(name if counts[name] == 1 else f"{name}:{counts[name]}")
    return Rows(tuple(columns), cursor.fetchall())

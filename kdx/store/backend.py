"""The interface of a backend, which keeps a results database, and its promises to the rest of kdx.

Everything that depends on the kind of database lies behind `Backend`: connecting, locking and waiting, the meaning of
the driver's errors, SQL that differs between databases, copies, checks and users' own queries. Neither this file nor a
backend imports SQLAlchemy before a transaction begins, so that `kdx query` answers at once.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kdx.errors import DatabaseError, KdxError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

    from kdx.store.rows import Rows

OTHER_DATABASE = "nothing was changed; name the results database with --db or KDX_DB"

POSTGRESQL = "postgresql+psycopg://USER@HOST/DATABASE"

ADDRESSES = f"a file, sqlite:///FILE, {POSTGRESQL}"
"""The addresses that `backend_of` understands, in words."""


class DamagedDatabaseError(DatabaseError):
    """The file is a database, but its parts contradict each other."""


class TransactionLostError(DatabaseError):
    """A transaction was broken off from outside: nothing of it stands, or, at its commit, all of it may."""


@dataclass(frozen=True)
class Software:
    """The program that keeps a database."""

    name: str
    """Its name, such as sqlite."""
    version: str
    facts: Mapping[str, bool]
    """Further properties, for `--json`."""
    warning: str
    """A warning about this version; empty if there is none."""


class Backend(Protocol):
    """One results database of some kind. Making a backend neither opens nor changes anything.

    Methods let errors of the driver pass, and the caller turns them into messages with `translate`. Only `prepare`,
    `exists`, `refuse_foreign`, `query`, `rows`, `software` and `back_up` raise errors of kdx, as their docstrings say,
    and so does a transaction where a server refuses to connect.
    """

    name: str
    """The name in messages: the address as it was given, without a password."""
    writable: bool
    patience: float
    """Seconds that a transaction waits for those of other processes."""
    reconnects: bool
    """Whether a transaction waits as long for a server that cannot be reached, since it was there before."""
    keeps_copies: bool
    """Whether `keep_copy` copies the database."""
    id: str | None
    """Once it is set, a transaction begins only in the database whose `identity.id` it is."""
    recovery: str
    """A shell command that saves what is left of a damaged database."""
    views: Mapping[str, str]
    """Name → the statement that creates the view, see `kdx.store.views`."""
    trigger: str
    """The statement that creates the trigger which keeps runs in their final state."""

    @property
    def file(self) -> Path | None:
        """The file that the database is; None: it is on a server."""

    @property
    def location(self) -> Path:
        """The path beside which the folder of run files lies, and after which it is named; the same for every process.

        It is in the folder that KDX_FILES names, or else it is `file`, or one of this machine where there is no file.
        """

    @property
    def reading(self) -> "Engine":
        """The engine for reading; each of its transactions sees one state of the database."""

    @property
    def writing(self) -> "Engine":
        """The engine for writing; over all processes, only one of its transactions runs at a time.

        A committed transaction survives a power cut, and an aborted one leaves nothing. Signals are handled while a
        transaction waits for others.
        """

    @property
    def writing_beside(self) -> "Engine":
        """An engine for writing whose transactions run beside each other where the database can, never beside others.

        Locks of rows alone keep them apart, so each begins with an UPDATE of the row that decides whether it may write.
        """

    def connected(self) -> AbstractContextManager[None]:
        """See `kdx.store.database.Database.connected`."""

    def disconnect(self) -> None:
        """See `kdx.store.database.Database.disconnect`."""

    def close(self) -> None:
        """Releases the database."""

    def exists(self) -> bool:
        """Whether there is anything at the address; `prepare` checks what it is.

        Raises:
            DatabaseError: nobody can tell, since the server cannot be used.
        """

    def prepare(self, *, write: bool, create: bool) -> None:
        """Refuses a database that cannot be opened in this way, before anything is touched, or creates one.

        Afterwards a transaction can begin; a database that `create` made holds no table yet.

        Args:
            write: whether the database is going to be written.
            create: whether to create a database where there is none.

        Raises:
            DatabaseError: the database is absent, out of reach, of another application, or unsafe to open in this way.
            StorageError: it cannot be created.
        """

    def tables(self, connection: "Connection") -> Collection[str]:
        """The names of all existing tables, views and the like; none in a new database."""

    def refuse_foreign(self, connection: "Connection") -> None:
        """Checks objects that could answer or act in place of kdx, such as views and triggers, before any of them runs.

        Raises:
            DatabaseError: an object is not as kdx makes it.
        """

    def migrating(self) -> AbstractContextManager["Connection"]:
        """A transaction of `writing` in which tables may be recreated; references are valid again at its end."""

    def keep_copy(self, revision: str) -> Path | None:
        """Copies the database before it is migrated to `revision`; None if this backend makes no copies.

        Raises:
            StorageError: there is no room for it.
        """

    def insert(self, table: "Table") -> Any:
        """An INSERT with `on_conflict_do_nothing` and `on_conflict_do_update`; SQLAlchemy has one for each dialect."""

    def field(self, column: str, path: str) -> str:
        """SQL that reads one field, such as `training.steps`, of a column with JSON, as a user would type it."""

    def translate(self, error: BaseException) -> KdxError | None:
        """The error of kdx for an error of the driver, also one that SQLAlchemy wrapped; None for any other error."""

    def query(
        self, statement: str, values: tuple[Any, ...], mended: Callable[[], AbstractContextManager[None]]
    ) -> "Rows":
        """The rows of one SELECT of a user, in a transaction of its own that can only read.

        It needs no SQLAlchemy where the database is in order; Ctrl-C ends it.

        Args:
            mended: called where the database is not in order: repairs it while the context is open, or raises what is
                wrong.

        Raises:
            KdxError: the statement is not understood, or is anything but a SELECT.
            DatabaseError: the database cannot be opened to read.
            StorageError: there is no room for the answer.
        """

    def rows(self, connection: "Connection", statement: str, values: Mapping[str, Any]) -> "Rows":
        """The rows of one of kdx's own SELECTs, within a transaction; invalid text is decoded with surrogates.

        Args:
            values: parameter `:name` in the statement → value.

        Raises:
            StorageError: there is no room for the answer.
        """

    def faults(self, connection: "Connection", most: int) -> Iterator[str]:
        """Descriptions of faults below the tables: pages, references, triggers; at most `most` of a kind."""

    def stray_mode(self, connection: "Connection") -> str | None:
        """The mode that another program set, which opening to write undoes; None if it is the mode of kdx."""

    def software(self) -> Software:
        """The program that keeps the database."""

    def back_up(self, target: Path) -> None:
        """Copies one state of the database to a new file, which has its name only when it is whole.

        Others may read and write meanwhile; what they commit may wait for the copy.

        Raises:
            KdxError: there is a file of that name, or none can have it.
            StorageError: it cannot be written.
            DamagedDatabaseError: the database is damaged, and so would be the copy.
        """

    def url(self) -> tuple[str, Mapping[str, Any]]:
        """SQLAlchemy's address, and arguments of its engine, for a library that keeps tables of its own beside ours.

        The address has the password in it, so it must not be shown.
        """

    def peek_id(self) -> str | None:
        """Reads `identity.id` without a lock while another process may be writing; None if it cannot be read."""


def without_password(address: str | Path) -> str:
    """An address without its password, so that it may be shown."""
    # Not by a URL parser, since text that is no URL may have a password too.
    hidden = re.sub(r"(://[^:/@]*:).*(?=@)", r"\1***", str(address))
    return re.sub(r"([?&]\w*password=)[^&]*", r"\1***", hidden, flags=re.IGNORECASE)


def another_application(name: str) -> DatabaseError:
    """The error for a database that does not belong to kdx."""
    return DatabaseError("this database belongs to another application", place=name, hint=OTHER_DATABASE)

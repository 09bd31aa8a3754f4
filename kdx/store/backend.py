"""What keeps a results database: the promises that everything above rests on.

Whatever depends on the kind of database lies behind `Backend`: connecting, locking and waiting, what the driver's
errors mean, expressions that SQL has no common words for, copies, checks, questions of somebody's own. Neither this
file nor a backend imports SQLAlchemy before a transaction is begun, so that a question in SQL is answered at once.
"""

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

ADDRESSES = "a file, sqlite:///FILE"
"""What `backend_of` understands, in words."""


class DamagedDatabaseError(DatabaseError):
    """It is a database, yet parts of it contradict each other."""


@dataclass(frozen=True)
class Software:
    """The program that keeps a database."""

    name: str
    """Such as sqlite."""
    version: str
    facts: Mapping[str, bool]
    """What else a program may want to know of it."""
    warning: str
    """What is said of this version; empty: nothing."""


class Backend(Protocol):
    """One results database of some kind. Making a backend neither opens nor changes anything.

    A method that meets an error of its driver lets it pass; whoever calls asks `translate` what to tell of it. Only
    `prepare`, `refuse_foreign`, `query`, `rows` and `back_up` tell their own faults, as they say.
    """

    name: str
    """What messages call it: the address as it was given, without a password."""
    location: Path
    """What the folder of run files stands beside, and is named after: the same for all who open this database."""
    writable: bool
    patience: float
    """Seconds that a transaction waits for those of others."""
    id: str | None
    """Once it is set, a transaction begins only in the database that has it as `identity.id`."""
    recovery: str
    """A command that saves what is left of a damaged database, as somebody would type it."""

    @property
    def reading(self) -> "Engine":
        """Its transactions see one state of the database, from their first statement to their last."""

    @property
    def writing(self) -> "Engine":
        """Of its transactions there is one at a time, from its start to its commit, whatever process has it.

        Once committed it survives a power cut; one that is broken off leaves nothing. Waiting, for others to end
        theirs, hears signals.
        """

    def close(self) -> None:
        """Lets go of the database."""

    def exists(self) -> bool:
        """Whether there is anything to be opened; what it is, `prepare` tells."""

    def prepare(self, *, write: bool, create: bool) -> None:
        """Refuses what is not to be opened so, before anything is touched, and makes what is to be made.

        Afterwards a transaction can be begun; where `create` made something, it holds no table yet.

        Args:
            write: whether it is going to be written.
            create: whether to make a database where there is none.

        Raises:
            DatabaseError: absent, out of reach, of another application, or not to be trusted with what is to be done.
            StorageError: it cannot be made.
        """

    def tables(self, connection: "Connection") -> Collection[str]:
        """Names of all tables, views and the like that there are; none in a new database."""

    def refuse_foreign(self, connection: "Connection") -> None:
        """Looks at what would answer or act in place of kdx, such as views and triggers; nothing of it has run by then.

        Raises:
            DatabaseError: it is not as the migrations make it.
        """

    def migrating(self) -> AbstractContextManager["Connection"]:
        """A transaction of `writing` in which tables may be made anew; references hold again at its end."""

    def keep_copy(self, revision: str) -> Path | None:
        """Copies the database as it is, before it is migrated to `revision`; None: no copy is to be had of this kind.

        Raises:
            StorageError: there is no room for it.
        """

    def insert(self, table: "Table") -> Any:
        """An INSERT that knows `on_conflict_do_nothing` and `on_conflict_do_update`, which SQLAlchemy keeps apart."""

    def field(self, column: str, path: str) -> str:
        """SQL that reads one field, such as `training.steps`, of a column with JSON, as somebody would type it."""

    def translate(self, error: BaseException) -> KdxError | None:
        """What to tell of an error of the driver, be it wrapped by SQLAlchemy; None: of any other, and of kdx's own."""

    def query(
        self, statement: str, values: tuple[Any, ...], mended: Callable[[], AbstractContextManager[None]]
    ) -> "Rows":
        """The rows of one SELECT of somebody's own, in a transaction of its own that can do nothing but read.

        Answered without SQLAlchemy where the database is as it should be; Ctrl-C ends it.

        Args:
            mended: asked where it is not as it should be: mends it for as long as it is held, or tells what is wrong.

        Raises:
            KdxError: the statement is not understood, or is anything but a SELECT.
            DatabaseError: it cannot be opened to read.
            StorageError: there is no room for the answer.
        """

    def rows(self, connection: "Connection", statement: str, values: Mapping[str, Any]) -> "Rows":
        """The rows of one of kdx's own SELECTs, within a transaction; text that is none has surrogates.

        Args:
            values: of `:name` in the statement.

        Raises:
            StorageError: there is no room for the answer.
        """

    def faults(self, connection: "Connection", most: int) -> Iterator[str]:
        """What is wrong with the database below its tables: pages, references, triggers; `most` of a kind."""

    def stray_mode(self, connection: "Connection") -> str | None:
        """The mode that another program put the database into, and that opening it to write undoes; None: kdx's own."""

    def software(self) -> Software:
        """The program that keeps it."""

    def back_up(self, target: Path) -> None:
        """Copies one state of the database to a new file, which has its name only when it is whole.

        Others may read and write meanwhile; what they commit may wait for the copy.

        Raises:
            KdxError: there is a file of that name, or none can have it.
            StorageError: it cannot be written.
            DamagedDatabaseError: the database is damaged, and so would be the copy.
        """

    def peek_id(self) -> str | None:
        """`identity.id` of a database that somebody may be writing just now; takes no lock. None: it cannot be read."""


def without_password(address: str | Path) -> str:
    """An address as it may be shown."""
    import re

    # By hand, since what is no URL may have one too.
    return re.sub(r"(://[^:/@]*:).*(?=@)", r"\1***", str(address))


def another_application(name: str) -> DatabaseError:
    """What is told of a database that is not of kdx."""
    return DatabaseError("this database belongs to another application", place=name, hint=OTHER_DATABASE)

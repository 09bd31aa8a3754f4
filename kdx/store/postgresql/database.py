"""A results database on a server of PostgreSQL."""

import random
import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import psycopg
from psycopg.adapt import AdaptersMap, Buffer, Loader
from psycopg.types.string import TextLoader
from sqlalchemy import Connection, Engine, ForeignKeyConstraint, and_, create_engine, event, exists, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool, QueuePool

from kdx.errors import DatabaseError, KdxError, did_you_mean
from kdx.shell import shell_word
from kdx.store.backend import Database, Mode, Rows, driver_of, fetched
from kdx.store.postgresql.address import address_of
from kdx.store.postgresql.errors import NoDatabaseError, refused, translate
from kdx.store.postgresql.objects import TRIGGER, PostgresqlDialect, missing, objects, refuse_foreign_objects
from kdx.store.refusals import BY, absent, gone, more_than_one, not_one_select, not_only_reading, not_understood
from kdx.store.schema import metadata

LOCK = 0x6B647831
"""The advisory lock of kdx, "kdx1"; each database has its own [PostgreSQL, 13.3.5]."""

LONGEST_SILENCE = 600
"""Seconds after which the server ends a transaction whose process has stopped or lost its machine.

Until then its locks hold up others.
"""

LONGEST_PAUSE = 5.0
"""Seconds between two attempts to connect, at most."""

_ALIVE = {
    # Without these a connection to a machine that lost its power hangs for hours [PostgreSQL, 34.1.2].
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

_NOT_UNDERSTOOD = ("42", "22", "21", "54", "0A", "2F", "3F")
"""Classes of errors in a statement [PostgreSQL, appendix A]."""

_ANOTHER_KIND = frozenset({"25006", "0A000"})
"""Read-only transaction, feature not supported."""

_KEEP_VIEWS = (psycopg.errors.InsufficientPrivilege, psycopg.errors.DependentObjectsStillExist)
_READS = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(select|with|values|table|explain)\b", re.IGNORECASE | re.DOTALL)
_NOTHING = re.compile(r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)


class _Flag(Loader):
    """A boolean as 1 or 0, which is what it is on SQLite."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _Decimal(Loader):
    """A sum of whole numbers, which the server makes a decimal one."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


@cache
def adapters() -> AdaptersMap:
    """Make values what they are on SQLite; JSON stays the text that was written."""
    loaders = AdaptersMap(psycopg.adapters)
    for name in ("json", "jsonb"):
        loaders.register_loader(name, TextLoader)
    loaders.register_loader("bool", _Flag)
    loaders.register_loader("numeric", _Decimal)
    return loaders


def _read_as_text(cursor: psycopg.RawCursor[Any]) -> None:
    """Make a text of what is neither a number nor bytes: a user's query may give any type."""
    for kind in psycopg.adapters.types:
        if kind.name not in ("bool", "numeric", "bytea", "int2", "int4", "int8", "oid", "float4", "float8"):
            cursor.adapters.register_loader(kind.oid, TextLoader)
        if kind.array_oid:
            cursor.adapters.register_loader(kind.array_oid, TextLoader)


class Postgresql(Database):
    """A results database on a server. Each transaction has a connection of its own, but for those of `connected`.

    So a worker has none while it trains: a thousand workers would need a thousand connections, of which a server has a
    hundred.
    """

    statements = (TRIGGER,)
    dialect = PostgresqlDialect()
    insert = staticmethod(insert)

    def __init__(self, address: str | Path, *, write: bool = False) -> None:
        self.address = address_of(address)
        super().__init__(self.address.shown, write=write)
        self._keeps = threading.local()

    def _make_engine(self) -> Engine:
        # The pool has at most the one connection that a thread keeps; every other is closed when it is given back.
        engine = create_engine(
            "postgresql+psycopg://",
            creator=self._connect,
            poolclass=QueuePool,
            pool_size=1,
            max_overflow=-1,
            use_native_hstore=False,
        )

        @event.listens_for(engine, "checkin")
        def give_back(driver: psycopg.Connection[Any] | None, entry: ConnectionPoolEntry) -> None:
            if driver is not None and (driver.closed or not getattr(self._keeps, "connection", False)):
                entry.invalidate()

        return engine

    @contextmanager
    def connected(self) -> Iterator[None]:
        self._keeps.connection = True
        try:
            yield
        finally:
            self._keeps.connection = False
            self.disconnect()

    def _connect(self) -> "psycopg.Connection[Any]":
        """A connection outside of any transaction.

        It waits `patience` seconds for a server that starts, or that has no connection left, and as long for one that
        cannot be reached, if it `reconnects`.

        Raises:
            DatabaseError: there is no such server or database, or it refuses this user.
        """
        deadline, pause = time.monotonic() + self.patience, 0.05
        while True:
            try:
                connection = psycopg.connect(
                    **{**_ALIVE, **self.address.parameters, "client_encoding": "UTF8", "application_name": "kdx"},
                    autocommit=True,
                    # Statements of a pooler between kdx and its server may reach different sessions.
                    prepare_threshold=None,
                    context=adapters(),
                )
            except psycopg.Error as error:
                refusal, temporary = refused(self.address, error, reconnects=self.reconnects)
                if not temporary or time.monotonic() + pause > deadline:
                    raise refusal from error
                time.sleep(pause * random.uniform(0.5, 1.5))
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                connection.close()
                raise DatabaseError(
                    f"the database has the encoding {encoding}, which cannot hold every text",
                    place=self.name,
                    hint=f"make one with: createdb --encoding=UTF8 --template=template0 {self.address.database}2",
                )
            return connection

    def _begin(self, driver: "psycopg.Connection[Any]", mode: Mode) -> None:
        """Begin a transaction, and reads the id of the database if it is known, in one round trip."""
        statements = ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]
        if mode is not Mode.READ:
            shared = "_shared" if mode is Mode.WRITE_BESIDE else ""
            statements = [
                # Each statement sees what was committed before it, and so before the lock was had.
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
                f"SET LOCAL lock_timeout = {max(1, round(1000 * self.patience))}",
                # A role may have a shorter one than the wait for the lock takes.
                "SET LOCAL statement_timeout = 0",
                f"SET LOCAL idle_in_transaction_session_timeout = {1000 * LONGEST_SILENCE}",
                # A server may be set to lose the last commits in a power cut.
                "SET LOCAL synchronous_commit = on",
                f"SELECT pg_advisory_xact_lock{shared}({LOCK})",
            ]
        if self.id is not None:
            statements.append("SELECT id FROM identity")
        try:
            cursor = driver.execute("; ".join(statements).encode())
            while cursor.nextset():
                pass
            there = self.id is None or cursor.fetchone() == (self.id,)
        except psycopg.errors.UndefinedTable:
            there = False
        if not there:
            raise gone(self.name, f"name the results database with {BY}")

    def _translate(self, error: BaseException) -> KdxError | None:
        return translate(error, self.address, self.patience) if isinstance(error, psycopg.Error) else None

    def _answer(self, driver: "psycopg.Connection[Any]", statement: str) -> Rows:
        if _NOTHING.fullmatch(statement):
            raise not_one_select()
        reads = _READS.match(statement)
        if reads is None:
            raise not_only_reading()
        cursor = psycopg.RawCursor(driver)
        _read_as_text(cursor)
        try:
            # Only where the result is to be binary does psycopg use the protocol that takes one statement; in the
            # other, `;` could be followed by the end of this transaction and whatever else.
            if reads[1].lower() == "explain":
                return fetched(cursor.execute(statement.encode(), [], binary=True))
            # The server takes only a SELECT into a cursor.
            cursor.execute(f"DECLARE kdx NO SCROLL CURSOR FOR {statement}".encode(), [], binary=True)
            return fetched(cursor.execute(b"FETCH ALL FROM kdx", []))
        except psycopg.Error as error:
            self._raise_for_user(error)

    def _raise_for_user(self, error: psycopg.Error) -> NoReturn:
        state = error.sqlstate or ""
        if state in _ANOTHER_KIND:
            raise not_only_reading() from error
        if state[:2] not in _NOT_UNDERSTOOD:
            raise error
        message = (error.diag.message_primary or str(error)).partition("\n")[0]
        if "multiple commands" in message:
            raise more_than_one() from error
        hint = None
        if unknown := re.fullmatch(r'relation "(.*)" does not exist', message):
            with closing(self._connect()) as connection:
                hint = did_you_mean(unknown[1], objects(connection))
        raise not_understood(message, hint) from error

    def exists(self) -> bool:
        try:
            with closing(self._connect()) as connection:
                return bool(objects(connection))
        except NoDatabaseError:
            return False

    def prepare(self, *, write: bool, create: bool) -> None:
        with closing(self._connect()) as connection:
            self._refuse(connection, write=write, create=create)

    def _refuse(self, connection: "psycopg.Connection[Any]", *, write: bool, create: bool) -> None:
        schema, standby, may_create = connection.execute(
            "SELECT current_schema(), pg_is_in_recovery(), has_schema_privilege(current_schema(), 'CREATE')"
        ).fetchone() or (None, 0, 0)
        if schema is None:
            raise DatabaseError(
                "none of the schemas of its search_path exists, or may be used",
                place=self.name,
                hint="make one, such as CREATE SCHEMA public",
            )
        if write and standby:
            raise DatabaseError(
                "the server is a standby, which only reads",
                place=self.name,
                hint=f"name its primary server with {BY}",
            )
        if objects(connection):
            return
        if not create:
            raise absent(self.name)
        if not may_create:
            user = connection.info.user
            raise DatabaseError(
                f"{user} may not make tables in the schema {schema}",
                place=self.name,
                hint=f"its owner grants it: GRANT CREATE ON SCHEMA {schema} TO {user}",
            )

    def objects(self, connection: Connection) -> Collection[str]:
        driver = driver_of(connection)
        refuse_foreign_objects(driver, frozenset(metadata.tables), frozenset(self.views), self.name)
        return objects(driver)

    def recorded_views(self, connection: Connection) -> Mapping[str, str]:
        rows = connection.exec_driver_sql(
            "SELECT relname, obj_description(oid, 'pg_class') FROM pg_class"
            " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'v'"
        )
        return dict(rows.all())

    def make_views(self, connection: Connection) -> None:
        """Make the views, each with its statement as its comment, since the server keeps no statement word by word.

        They stay as they are where another user owns them, or somebody has views that read them.
        """
        try:
            with connection.begin_nested():
                super().make_views(connection)
                for name, statement in self.views.items():
                    quoted = statement.replace("'", "''")
                    connection.exec_driver_sql(f"COMMENT ON VIEW {name} IS '{quoted}'")
        except DBAPIError as error:
            if not isinstance(error.orig, _KEEP_VIEWS):
                raise

    def back_up(self, target: Path) -> None:
        raise KdxError("kdx does not copy a database of a server to a file", place=self.name, hint=self.recovery)

    def faults(self, connection: Connection, most: int) -> Iterator[str]:
        """Describe what is missing of the schema, and references to missing rows; at most `most` of these.

        The server checks its pages itself when it reads them, if its cluster was made with checksums.
        """
        yield from missing(driver_of(connection))
        there = objects(driver_of(connection))
        tables = [table for table in metadata.sorted_tables if table.name in there]
        references = (key for table in tables for key in table.foreign_key_constraints if key.referred_table in tables)
        described = (fault for key in references if (fault := _lost(connection, key)))
        yield from (fault for _, fault in zip(range(most), described, strict=False))

    @property
    def recovery(self) -> str:
        plain = self.name.replace("postgresql+psycopg:", "postgresql:").replace(":***@", "@")
        return f"pg_dump --format=custom --file=runs.dump {shell_word(plain)}"

    def software(self) -> tuple[str, str]:
        with closing(self._connect()) as connection:
            return "postgresql", connection.info.parameter_status("server_version") or "unknown"

    def url(self) -> tuple[str, Mapping[str, Any]]:
        # As in `_connect`: a prepared statement is not there in another session of a pooler.
        without = {"prepare_threshold": None}
        return self.address.url.render_as_string(hide_password=False), {"poolclass": NullPool, "connect_args": without}

    @staticmethod
    def field(column: str, path: str) -> str:
        return f"{column}::json #>> '{{{path.replace('.', ',')}}}'"


def _lost(connection: Connection, reference: ForeignKeyConstraint) -> str | None:
    table, other = reference.table, reference.referred_table
    named = and_(*(element.parent.is_not(None) for element in reference.elements))
    there = exists().where(*(element.column == element.parent for element in reference.elements))
    count = connection.scalar(select(func.count()).select_from(table).where(named, ~there))
    return f"{count} rows of {table.name} name a row of {other.name} that is not there" if count else None

"""Implements `kdx.store.backend.Backend` for PostgreSQL."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from platformdirs import user_data_path

from kdx.errors import DatabaseError, KdxError
from kdx.shell import shell_word
from kdx.store.backend import OTHER_DATABASE, Software
from kdx.store.place_of_files import named_folder, place_in
from kdx.store.postgresql import errors
from kdx.store.postgresql.address import address_of
from kdx.store.postgresql.connecting import NoDatabaseError, connect
from kdx.store.postgresql.objects import objects, refuse_foreign_objects
from kdx.store.postgresql.query import query
from kdx.store.postgresql.transactions import Mode, begin
from kdx.store.postgresql.views import TRIGGER, VIEW_STATEMENTS
from kdx.store.rows import Rows, kept

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

    from kdx.store.postgresql.engines import Engines


class Postgresql:
    """A results database on a server. Each transaction has a connection of its own, but for those of `connected`."""

    keeps_copies = False
    views: Mapping[str, str] = VIEW_STATEMENTS
    trigger = TRIGGER
    file: Path | None = None

    def __init__(self, address: str | Path, *, write: bool) -> None:
        self.address = address_of(address)
        self.name = self.address.shown
        self.writable = write
        self.patience = 0.0
        self.reconnects = False
        self.id: str | None = None
        self.recovery = self._dump

    @property
    def location(self) -> Path:
        return place_in(named_folder() or user_data_path("kdx") / "runs", self.id or self.peek_id())

    @property
    def reading(self) -> "Engine":
        return self._engines[Mode.READ]

    @property
    def writing(self) -> "Engine":
        return self._engines[Mode.WRITE]

    @property
    def writing_beside(self) -> "Engine":
        return self._engines[Mode.WRITE_BESIDE]

    @cached_property
    def _engines(self) -> "Engines":
        # late: `kdx query` talks to the driver, and SQLAlchemy takes 0.13 s to import
        from kdx.store.postgresql.engines import Engines

        return Engines(self._connect, self._begin)

    def connected(self) -> AbstractContextManager[None]:
        return self._engines.connected()

    def disconnect(self) -> None:
        self._engines.disconnect()

    def close(self) -> None:
        """Nothing is open outside of transactions and of `connected`."""

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
                hint="name its primary server with --db or KDX_DB",
            )
        if objects(connection):
            return
        if not create:
            raise DatabaseError(
                "there is no results database here",
                place=self.name,
                hint="kdx sweep makes one; name another with --db or KDX_DB",
            )
        if not may_create:
            user = connection.info.user
            raise DatabaseError(
                f"{user} may not make tables in the schema {schema}",
                place=self.name,
                hint=f"its owner grants it: GRANT CREATE ON SCHEMA {schema} TO {user}",
            )

    def tables(self, connection: "Connection") -> Collection[str]:
        return objects(_driver_of(connection))

    def refuse_foreign(self, connection: "Connection") -> None:
        from kdx.store.schema import metadata

        tables, views = frozenset(metadata.tables), frozenset(self.views)
        refuse_foreign_objects(_driver_of(connection), tables, views, self.name)

    @contextmanager
    def migrating(self) -> "Iterator[Connection]":
        with self.writing.begin() as connection:
            yield connection

    def keep_copy(self, revision: str) -> None:
        return None

    def insert(self, table: "Table") -> Any:
        # late: `kdx query` talks to the driver, and SQLAlchemy takes 0.13 s to import
        from sqlalchemy.dialects.postgresql import insert

        return insert(table)

    def field(self, column: str, path: str) -> str:
        return f"{column}::json #>> '{{{path.replace('.', ',')}}}'"

    def translate(self, error: BaseException) -> KdxError | None:
        error = getattr(error, "orig", None) or error  # SQLAlchemy keeps the driver's error there
        return errors.translate(error, self.address, self.patience) if isinstance(error, psycopg.Error) else None

    def query(
        self, statement: str, values: tuple[Any, ...], mended: Callable[[], AbstractContextManager[None]]
    ) -> Rows:
        return query(self, self.address, statement, values, mended)

    def rows(self, connection: "Connection", statement: str, values: Mapping[str, Any]) -> Rows:
        from sqlalchemy import text

        return kept(connection.execute(text(statement), values).cursor)

    def faults(self, connection: "Connection", most: int) -> Iterator[str]:
        from kdx.store.postgresql import check

        yield from check.faults(connection, most)
        with closing(self._connect()) as driver:
            yield from check.other_views(driver)

    def stray_mode(self, connection: "Connection") -> None:
        return None

    def software(self) -> Software:
        with closing(self._connect()) as connection:
            version = connection.info.parameter_status("server_version") or "unknown"
        return Software("postgresql", version, {}, "")

    def back_up(self, target: Path) -> None:
        raise KdxError("kdx does not copy a database of a server to a file", place=self.name, hint=self._dump)

    def peek_id(self) -> str | None:
        try:
            with closing(self._connect()) as connection:
                found = connection.execute("SELECT id FROM identity").fetchone()
        except (psycopg.Error, DatabaseError):
            return None
        return str(found[0]) if found else None

    def url(self) -> tuple[str, Mapping[str, Any]]:
        from sqlalchemy import URL
        from sqlalchemy.pool import NullPool

        given = dict(self.address.parameters)
        port = given.pop("port", None)
        url = URL.create(
            "postgresql+psycopg",
            username=given.pop("user", None),
            password=given.pop("password", None),
            host=given.pop("host", None),
            port=None if port is None else int(port),
            database=given.pop("dbname"),
            query=given,
        )
        # As in `connect`: a prepared statement is not there in another session of a pooler.
        without = {"prepare_threshold": None}
        return url.render_as_string(hide_password=False), {"poolclass": NullPool, "connect_args": without}

    @property
    def _dump(self) -> str:
        plain = self.name.replace("postgresql+psycopg:", "postgresql:").replace(":***@", "@")
        return f"pg_dump --format=custom --file=runs.dump {shell_word(plain)}"

    def _connect(self) -> "psycopg.Connection[Any]":
        return connect(self.address, self.patience, reconnects=self.reconnects)

    def _begin(self, driver: "psycopg.Connection[Any]", mode: Mode) -> None:
        try:
            found = begin(driver, mode, self.patience, identified=self.id is not None)
        except psycopg.errors.UndefinedTable as error:
            raise self._gone() from error
        if found != self.id:
            raise self._gone()

    def _gone(self) -> DatabaseError:
        return DatabaseError(
            "the database was deleted or replaced while it was open",
            place=self.name,
            hint=f"nothing was written to what is there now; {OTHER_DATABASE.partition('; ')[2]}",
        )


def _driver_of(connection: "Connection") -> "psycopg.Connection[Any]":
    from kdx.store.postgresql.engines import driver_of

    return driver_of(connection)

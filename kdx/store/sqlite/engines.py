"""SQLAlchemy engines for SQLite whose transactions begin and end as kdx needs it."""

import sqlite3
from collections.abc import Callable

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from kdx.store.sqlite import expressions  # noqa: F401, since it registers SQLite's SQL with SQLAlchemy


def engines(
    connect: Callable[[], sqlite3.Connection],
    begin: Callable[[sqlite3.Connection, str], None],
    commit: Callable[[sqlite3.Connection], None],
) -> tuple[Engine, Engine]:
    """The engine for transactions that read, and the one for transactions that write.

    Args:
        begin: called with a connection and the statement that begins a transaction.
        commit: called with a connection to commit its transaction.
    """
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin_it(connection: Connection) -> None:
        begin(driver_of(connection), connection.get_execution_options().get("kdx_begin", "BEGIN"))

    @event.listens_for(engine, "commit")
    def commit_it(connection: Connection) -> None:
        # SQLAlchemy's own commit, which comes after this one, finds nothing to do.
        commit(driver_of(connection))

    return engine, engine.execution_options(kdx_begin="BEGIN IMMEDIATE")


def driver_of(connection: Connection) -> sqlite3.Connection:
    """The driver's connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver

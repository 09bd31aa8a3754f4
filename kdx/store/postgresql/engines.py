"""SQLAlchemy engines for PostgreSQL whose transactions begin as kdx needs it."""

from collections.abc import Callable
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from kdx.store.postgresql import expressions  # noqa: F401, since it registers PostgreSQL's SQL with SQLAlchemy
from kdx.store.postgresql.transactions import Mode

_MODE = "kdx_mode"


def engines(
    connect: Callable[[], psycopg.Connection[Any]], begin: Callable[[psycopg.Connection[Any], Mode], None]
) -> dict[Mode, Engine]:
    """An engine for each kind of transaction.

    A transaction has a connection of its own, so that a worker has none while it trains. Connecting takes 10 ms, and a
    worker writes once a second; a thousand workers would need a thousand connections, of which a server has a hundred.

    Args:
        begin: called with a connection to begin a transaction.
    """
    engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool, use_native_hstore=False)

    @event.listens_for(engine, "begin")
    def begin_it(connection: Connection) -> None:
        begin(driver_of(connection), connection.get_execution_options()[_MODE])

    return {mode: engine.execution_options(**{_MODE: mode}) for mode in Mode}


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """The driver's connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver

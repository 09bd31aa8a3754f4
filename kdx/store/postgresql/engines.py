"""SQLAlchemy engines for PostgreSQL whose transactions begin as kdx needs it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from kdx.store.postgresql import expressions  # noqa: F401, since it registers PostgreSQL's SQL with SQLAlchemy
from kdx.store.postgresql.transactions import Mode

_MODE = "kdx_mode"


class Engines:
    """An engine for each kind of transaction.

    A transaction has a connection of its own, so that a worker has none while it trains: a thousand workers would need
    a thousand connections, of which a server has a hundred. Connecting takes longer than most transactions; so those
    that follow each other at once may take turns on one, see `connected`.
    """

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], begin: Callable[[psycopg.Connection[Any], Mode], None]
    ) -> None:
        """Takes what makes a connection, and what begins a transaction with one."""
        # The pool has at most the one connection that a thread keeps; every other is closed when it is given back.
        engine = create_engine(
            "postgresql+psycopg://",
            creator=connect,
            poolclass=QueuePool,
            pool_size=1,
            max_overflow=-1,
            use_native_hstore=False,
        )
        self._pool = engine.pool
        self._here = threading.local()

        @event.listens_for(engine, "begin")
        def begin_it(connection: Connection) -> None:
            begin(driver_of(connection), connection.get_execution_options()[_MODE])

        @event.listens_for(engine, "checkin")
        def give_back(driver: psycopg.Connection[Any] | None, entry: ConnectionPoolEntry) -> None:
            if driver is not None and (driver.closed or not getattr(self._here, "keeps", False)):
                entry.invalidate()

        self._of_modes = {mode: engine.execution_options(**{_MODE: mode}) for mode in Mode}

    def __getitem__(self, mode: Mode) -> Engine:
        return self._of_modes[mode]

    @contextmanager
    def connected(self) -> Iterator[None]:
        """See `kdx.store.database.Database.connected`."""
        self._here.keeps = True
        try:
            yield
        finally:
            self._here.keeps = False
            self.disconnect()

    def disconnect(self) -> None:
        """Closes the connection that is kept, if there is one."""
        self._pool.dispose()


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """The driver's connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver

"""What the tests of PostgreSQL's own may use; `address` is that of a database on a server here."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from postgresql_server import PostgresqlServer

from kdx.store.database import Database, open_database
from tests.store.conftest import PostgresqlDatabases

Connected = Callable[[], AbstractContextManager[Any]]


@pytest.fixture(scope="session")
def made(postgresql_server: PostgresqlServer) -> PostgresqlDatabases:
    return PostgresqlDatabases(postgresql_server, "kdx_own")


@pytest.fixture
def nowhere(made: PostgresqlDatabases, tmp_path: Path) -> Iterator[str]:
    yield made.nowhere(tmp_path)
    made.forget()


@pytest.fixture
def address(made: PostgresqlDatabases, tmp_path: Path) -> Iterator[str]:
    yield made.make(tmp_path)
    made.forget()


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    with open_database(address, write=True) as opened:
        yield opened


@pytest.fixture
def connected(postgresql_server: PostgresqlServer, address: str) -> Connected:
    """A connection to the database outside of kdx."""

    @contextmanager
    def connected() -> Iterator[Any]:
        with postgresql_server.connected(address.rpartition("/")[2]) as connection:
            yield connection

    return connected

"""What the tests of PostgreSQL alone may use; `address` is that of a database on a server here."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from postgresql_server import PostgresqlServer

from tests.store.conftest import PostgresqlDatabases

Connected = Callable[[], AbstractContextManager[Any]]


@pytest.fixture(scope="session")
def databases(postgresql_server: PostgresqlServer) -> PostgresqlDatabases:
    return PostgresqlDatabases(postgresql_server, "kdx_own")


@pytest.fixture
def connected(postgresql_server: PostgresqlServer, address: str) -> Connected:
    """A connection to the database outside of kdx."""
    return lambda: postgresql_server.connected(address.rpartition("/")[2])

"""Addresses of databases on servers, and where their passwords are not."""

import pytest

from kdx.errors import DatabaseError
from kdx.store.database import database_at
from kdx.store.postgresql.address import address_of


@pytest.mark.parametrize(
    ("address", "parameters"),
    [
        ("postgresql://host/runs", {"host": "host", "dbname": "runs"}),
        (
            "postgresql+psycopg://me:p%40ss%2Fword@host:5433/my%20runs?sslmode=require",
            {
                "host": "host",
                "port": 5433,
                "user": "me",
                "password": "p@ss/word",
                "dbname": "my runs",
                "sslmode": "require",
            },
        ),
        ("postgresql:///runs?host=/var/run/postgresql", {"dbname": "runs", "host": "/var/run/postgresql"}),
        ("postgresql://me@[::1]/runs", {"host": "::1", "user": "me", "dbname": "runs"}),
    ],
)
def test_an_address_names_what_the_driver_needs(address: str, parameters):
    found = address_of(address)
    assert dict(found.parameters) == parameters
    assert "p@ss" not in repr(found) and "p%40ss" not in repr(found)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("postgresql://me:secret@host/", "the address names no database"),
        ("postgresql://me:secret@host", "the address names no database"),
        ("postgresql://me:secret@host/a/b", "the address names no database"),
        ("postgresql://me:secret@host/a%00b", "the address names no database"),
        ("postgresql+asyncpg://me:secret@host/a", "kdx opens PostgreSQL through psycopg, and not through asyncpg"),
        ("postgresql://me@host/a?password=secret", "password stands among the options of the address"),
        ("postgresql://me:secret@host:port/runs", "this is not a database URL"),
    ],
)
def test_what_is_no_address_is_reported_without_its_password(address: str, problem: str):
    with pytest.raises(DatabaseError) as caught:
        database_at(address)
    assert caught.value.problem == problem and "secret" not in str(caught.value)
    assert caught.value.exit_code == 3

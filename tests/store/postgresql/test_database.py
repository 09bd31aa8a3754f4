"""What a database on a server does otherwise than a file."""

import pytest

from kdx.errors import KdxError
from kdx.store.database import database_at


def test_a_copy_is_left_to_the_program_of_the_server(database, tmp_path, address: str):
    with pytest.raises(KdxError) as caught:
        database.back_up(tmp_path / "copy.db")
    assert caught.value.problem == "kdx does not copy a database of a server to a file"
    plain = address.replace("+psycopg", "")
    assert caught.value.hint == f"pg_dump --format=custom --file=runs.dump {plain}"
    assert not (tmp_path / "copy.db").exists()


def test_the_software_is_that_of_the_server(address: str):
    name, version = database_at(address).software()
    assert name == "postgresql" and int(version.partition(".")[0]) >= 13


def test_a_library_with_tables_of_its_own_opens_the_same_database(postgresql_server):
    backend = database_at("postgresql://me:p%40ss@host:5/runs?sslmode=require")
    url, arguments = backend.url()
    assert url == "postgresql+psycopg://me:p%40ss@host:5/runs?sslmode=require"
    assert arguments["poolclass"].__name__ == "NullPool"
    assert "p@ss" not in backend.name and "p%40ss" not in backend.name and "p%40ss" not in backend.recovery

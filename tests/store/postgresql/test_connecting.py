"""Servers that cannot be reached or refuse: one message each, and the password in none of them."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from postgresql_server import PostgresqlServer, pooler, port_that_is_free
from stored import refusal
from waiting import GIVE_UP, wait_until

from kdx.errors import DatabaseError
from kdx.store.database import database_at, open_database

SECRET = "s3cret-p%C3%A4ss"


@pytest.fixture
def users(postgresql_server: PostgresqlServer):
    """Users who need passwords."""
    postgresql_server.execute(
        "CREATE USER reader PASSWORD 's3cret-päss'",
        "CREATE USER limited PASSWORD 's3cret-päss' CONNECTION LIMIT 0",
    )
    yield
    with postgresql_server.connected() as connection:
        for (name,) in connection.execute("SELECT datname FROM pg_database WHERE datallowconn").fetchall():
            with postgresql_server.connected(name) as inside:
                inside.execute("DROP OWNED BY reader")
    postgresql_server.execute("DROP USER reader", "DROP USER limited")


def test_no_server(monkeypatch):
    port = port_that_is_free()
    said = refusal(f"postgresql://me:{SECRET}@127.0.0.1:{port}/runs")
    assert said == (
        f"postgresql://me:***@127.0.0.1:{port}/runs: no PostgreSQL server answers at 127.0.0.1:{port}\n"
        "  hint: start the server, or look at host and port in the address"
    )


def test_an_unknown_host():
    said = refusal(f"postgresql://me:{SECRET}@no-such-host.invalid/runs")
    assert said == (
        "postgresql://me:***@no-such-host.invalid/runs: there is no host `no-such-host.invalid`\n"
        "  hint: look at the host in the address"
    )


def test_no_such_database(postgresql_server: PostgresqlServer):
    address = postgresql_server.address("nowhere_at_all")
    assert not database_at(address).exists()
    for options in ({"write": False}, {"write": True, "create": True}):
        assert refusal(address, **options) == (
            f"{address}: there is no database `nowhere_at_all` on 127.0.0.1:{postgresql_server.port}\n"
            "  hint: make it, as a user who may: createdb --encoding=UTF8 nowhere_at_all"
        )


@pytest.mark.parametrize(
    ("user", "problem"),
    [
        ("reader:wrong", "the server refused reader: the password is wrong, or the user is"),
        ("reader", "the server refused reader: no password was given"),
        ("nobody:wrong", "the server refused nobody: the password is wrong, or the user is"),
    ],
)
def test_a_wrong_password(postgresql_server: PostgresqlServer, users, monkeypatch, user: str, problem: str):
    monkeypatch.setenv("PGPASSFILE", "/dev/null")
    said = refusal(postgresql_server.address("postgres", user))
    assert said.split("\n") == [
        f"{postgresql_server.address('postgres', user.replace('wrong', '***'))}: {problem}",
        "  hint: set PGPASSWORD, or write a line for it into the file of PGPASSFILE (~/.pgpass)",
    ]


def test_a_password_from_the_environment_opens_the_database(
    postgresql_server: PostgresqlServer, address: str, users, monkeypatch
):
    database = address.rpartition("/")[2]
    with postgresql_server.connected(database) as connection:
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    monkeypatch.setenv("PGPASSWORD", "s3cret-päss")
    with open_database(postgresql_server.address(database, "reader"), write=False) as opened:
        assert opened.id is not None
    monkeypatch.delenv("PGPASSWORD")
    with open_database(postgresql_server.address(database, f"reader:{SECRET}"), write=False) as again:
        assert again.id == opened.id


def test_no_rights(postgresql_server: PostgresqlServer, nowhere: str, address: str, users):
    mine = postgresql_server.address(address.rpartition("/")[2], f"reader:{SECRET}")
    assert "no permission: permission denied for" in refusal(mine)
    assert "  hint: its owner grants it" in refusal(mine)
    empty = postgresql_server.address("postgres", f"reader:{SECRET}")
    said = refusal(empty, write=True, create=True)
    assert "reader may not make tables in the schema public" in said
    assert "GRANT CREATE ON SCHEMA public TO reader" in said


def test_too_many_connections(postgresql_server: PostgresqlServer, users, monkeypatch):
    monkeypatch.setattr("kdx.store.database.BUSY_SECONDS", 0.2)
    said = refusal(postgresql_server.address("postgres", f"limited:{SECRET}"))
    assert f"the server 127.0.0.1:{postgresql_server.port} has no connection left" in said
    assert "PgBouncer" in said


@pytest.mark.long
def test_too_many_connections_to_a_pooler(postgresql_server: PostgresqlServer, address: str, monkeypatch):
    monkeypatch.setattr("kdx.store.database.BUSY_SECONDS", 0.2)
    with pooler(postgresql_server, clients=1) as port:
        pooled = address.replace(str(postgresql_server.port), str(port))
        with open_database(pooled, write=False) as first, first.read():
            assert f"the server 127.0.0.1:{port} has no connection left" in refusal(pooled)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_another_encoding_is_refused(postgresql_server: PostgresqlServer, encoding: str):
    postgresql_server.execute(f"CREATE DATABASE other ENCODING {encoding} LOCALE 'C' TEMPLATE template0")
    try:
        said = refusal(postgresql_server.address("other"), write=True, create=True)
        assert f"the database has the encoding {encoding}, which cannot hold every text" in said
    finally:
        postgresql_server.execute("DROP DATABASE other")


def test_a_patient_process_waits_for_a_server_that_starts_again(postgresql_server: PostgresqlServer, address: str):
    with open_database(address, write=True) as database:
        database.patience = GIVE_UP
        postgresql_server.stop()
        starter = threading.Timer(0.5, postgresql_server.start)
        starter.start()
        try:
            with database.write() as connection:
                assert connection.exec_driver_sql("SELECT 1").scalar() == 1
            with open_database(address, write=True, patient=True) as other:
                assert other.id == database.id
        finally:
            starter.join()


def test_a_server_that_stays_away_is_reported_once_patience_ends(postgresql_server: PostgresqlServer, address: str):
    with open_database(address, write=True) as database:
        database.patience = 0.3
        postgresql_server.stop()
        try:
            with pytest.raises(DatabaseError, match="no PostgreSQL server answers"), database.write():
                pass
        finally:
            postgresql_server.start()


def test_a_wait_for_a_lock_can_be_broken_off(address: str, database, connected):
    code = f"""
        from kdx.store.database import open_database
        database = open_database({address!r}, write=True, patient=True)
        print("waits", flush=True)
        with database.write():
            pass
    """
    with open_database(address, write=True) as holder:
        waiting = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
        # Opening writes as well, so the lock is taken afterwards.
        assert waiting.stdout is not None and waiting.stdout.readline() == b"waits\n"
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        with holder.write(), connected() as other:
            wait_until(lambda: waiting.poll() is not None or other.execute(waits).fetchone() != (0,))
            if waiting.poll() is None:
                os.kill(waiting.pid, signal.SIGINT)
                assert waiting.wait(300) == -signal.SIGINT or waiting.returncode == 130
    waiting.stdout.close()

"""A PostgreSQL server for tests: one a session, on a free port, with databases that cost milliseconds."""

import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.waiting import wait_until

_USERS = ("postgres", "nobody")


def programs() -> Path | None:
    """The folder of the server's programs, which Debian keeps out of PATH; None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if found:
        return found[-1].parent
    there = shutil.which("initdb")
    return Path(there).resolve().parent if there else None


TRUST = """
local all all trust
host all kdx 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""
"""Who may connect [pg_hba.conf]; a password takes milliseconds to check."""

QUICK = "fsync=off full_page_writes=off autovacuum=off jit=off shared_buffers=32MB max_connections=40"


class PostgresqlServer:
    """A server with the superuser kdx, who needs no password; every other user does."""

    def __init__(self, home: Path, programs: Path, settings: str = QUICK) -> None:
        self.home, self._programs, self._settings = home, programs, settings
        self._data = home / "data"
        self.port = port_that_is_free()
        # The server refuses to run as root.
        self.runs_as: list[str] = []
        """What a command begins with that is run as the server's user."""
        if os.getuid() == 0:
            import pwd

            known = {entry.pw_name for entry in pwd.getpwall()}
            user = next(name for name in _USERS if name in known)
            shutil.chown(home, user)
            self.runs_as = ["runuser", "-u", user, "--"]
        made = "--auth=trust --username=kdx --encoding=UTF8 --locale=C.UTF-8 --no-sync"
        self._run("initdb", "-D", str(self._data), *made.split())
        (self._data / "pg_hba.conf").write_text(TRUST)
        self.start()
        self._own: Any = None

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        settings = " ".join(f"-c {one}" for one in self._settings.split())
        options = f"-p {self.port} -k {self.home} -c listen_addresses=127.0.0.1 {settings}"
        self._run("pg_ctl", "-D", str(self._data), "-l", str(self.home / "log"), "-w", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stops the server, as a crash does."""
        if self._own is not None:
            self._own.close()
            self._own = None
        self._run("pg_ctl", "-D", str(self._data), "-m", mode, "-w", "stop")

    def _run(self, program: str, *words: str) -> None:
        command = [*self.runs_as, str(self._programs / program), *words]
        with tempfile.TemporaryFile("w+") as output:
            # Not a pipe, which the server would inherit and never close.
            done = subprocess.run(command, cwd="/", stdout=output, stderr=output)
            output.seek(0)
            assert not done.returncode, output.read()

    @property
    def process(self) -> int:
        """The id of the process that has all others as its children."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def address(self, database: str, user: str = "kdx") -> str:
        """An address, as messages show it; `user` may have a password behind a colon."""
        return f"postgresql+psycopg://{user}@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def connected(self, database: str = "postgres") -> Iterator[Any]:
        """A connection of the superuser, outside of kdx."""
        import psycopg

        with closing(psycopg.connect(**self._where, dbname=database, autocommit=True)) as connection:
            yield connection

    @property
    def _where(self) -> dict[str, Any]:
        return {"host": "127.0.0.1", "port": self.port, "user": "kdx"}

    def execute(self, *statements: str) -> None:
        """As the superuser, in a connection that stays."""
        import psycopg

        if self._own is None:
            self._own = psycopg.connect(**self._where, dbname="postgres", autocommit=True)
        for statement in statements:
            self._own.execute(statement)


POOLED = """
[databases]
* = host=127.0.0.1 port={server} user=kdx
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = {clients}
default_pool_size = {sessions}
server_idle_timeout = 2
"""


@contextmanager
def pooler(server: PostgresqlServer, *, clients: int = 1000, sessions: int = 20) -> Iterator[int]:
    """PgBouncer before a server, in transaction mode; its port. Everybody is the user kdx there.

    Args:
        clients: connections that it takes.
        sessions: connections of its own to each database of the server; an idle one is soon closed.
    """
    if (found := _pgbouncer()) is None:
        _without("PgBouncer is not installed (Debian: apt install pgbouncer)")
    settings = server.home / f"pgbouncer-{port_that_is_free()}.ini"
    port = port_that_is_free()
    settings.write_text(POOLED.format(server=server.port, port=port, clients=clients, sessions=sessions))
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([*server.runs_as, found, str(settings)], cwd="/", stdout=output, stderr=output)
        try:
            wait_until(lambda: _listens(port), lambda: process.poll() is None)
            yield port
        finally:
            process.terminate()
            process.wait()


def has_pooler() -> bool:
    """Whether `pooler` has a program to start."""
    return _pgbouncer() is not None


def _pgbouncer() -> str | None:
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


def port_that_is_free() -> int:
    """A port on which nobody listens, below those that the system gives to connections of anybody meanwhile."""
    ports = random.SystemRandom()
    while True:
        port = ports.randrange(20_000, 32_000)
        with closing(socket.socket()) as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def _listens(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _without(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def start_server(home: Path) -> PostgresqlServer:
    """Starts a server with its data in `home`, or skips the test where none is installed; in CI that fails."""
    found = programs()
    if found is None:
        _without("no PostgreSQL server is installed (Debian: apt install postgresql)")
    return PostgresqlServer(home, found)

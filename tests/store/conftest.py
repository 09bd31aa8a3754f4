"""The contract of the store: what every backend keeps, and what its tests may use."""

import hashlib
import multiprocessing
import os
import shutil
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import pytest
from postgresql_server import PostgresqlServer
from psycopg import IntegrityError
from sqlalchemy import Engine, event

from kdx.grid.identity import cell_id
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.store import claims
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter, register

sys.path.insert(0, str(Path(__file__).parent))

PlanOf = Callable[..., Plan]
InProcesses = Callable[..., list[str]]
Statements = Callable[[], AbstractContextManager[list[str]]]


class SqliteFiles:
    """Databases of SQLite, as the contract makes and looks at them."""

    def __init__(self, home: Path) -> None:
        # Made once, which takes longer than to copy it.
        self.empty = home / "empty.db"
        open_database(self.empty, write=True, create=True).close()

    def nowhere(self, folder: Path) -> str:
        """An address at which there is no database, of which each folder has one."""
        return str(folder / "runs.db")

    def make(self, folder: Path) -> str:
        """Makes a database without a sweep, and returns its address."""
        return shutil.copy(self.empty, self.nowhere(folder))

    def execute(self, address: str, *statements: str) -> None:
        """As another program might, which heeds no CHECK and no reference."""
        with closing(sqlite3.connect(address, isolation_level=None)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            for statement in statements:
                connection.execute(statement)

    def content(self, address: str) -> object:
        """Equal to what it was before as long as nothing was written; None: there is nothing."""
        return Path(address).read_bytes() if Path(address).exists() else None

    def forget(self) -> None:
        """Leaves files to pytest."""


class PostgresqlDatabases:
    """The same of PostgreSQL."""

    def __init__(self, server: PostgresqlServer, empty: str = "kdx_empty") -> None:
        self._server, self._empty = server, empty
        self._made: list[str] = []
        # It is there already where tests of another backend came between.
        server.execute(f"DROP DATABASE IF EXISTS {empty}", f"CREATE DATABASE {empty}")
        open_database(server.address(empty), write=True, create=True).close()

    def nowhere(self, folder: Path) -> str:
        return self._create(folder, "template1")

    def make(self, folder: Path) -> str:
        return self._create(folder, self._empty)

    def _create(self, folder: Path, template: str) -> str:
        name = f"t{hashlib.sha256(str(folder).encode()).hexdigest()[:20]}"
        self._server.execute(f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name} TEMPLATE {template}")
        self._made.append(name)
        return self._server.address(name)

    def execute(self, address: str, *statements: str) -> None:
        with self._server.connected(address.rpartition("/")[2]) as connection:
            # Without references; conditions of columns cannot be suspended, but come back without looking at rows.
            connection.execute("SET session_replication_role = replica")
            checks = connection.execute(
                "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
                " WHERE contype = 'c' AND connamespace = 'public'::regnamespace"
            ).fetchall()
            for table, name, _ in checks:
                connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            for statement in statements:
                connection.execute(statement)
            for table, name, condition in checks:
                connection.execute(f"ALTER TABLE IF EXISTS {table} ADD CONSTRAINT {name} {condition} NOT VALID")
                with suppress(IntegrityError):  # it stays invalid
                    connection.execute(f"ALTER TABLE IF EXISTS {table} VALIDATE CONSTRAINT {name}")

    def content(self, address: str) -> object:
        with self._server.connected(address.rpartition("/")[2]) as connection:
            names = connection.execute(
                "SELECT relname FROM pg_class"
                " WHERE relkind IN ('r', 'v', 'S') AND relnamespace = 'public'::regnamespace"
            ).fetchall()
            if not names:
                return None
            return {name: connection.execute(f"TABLE {name}").fetchall() for (name,) in sorted(names)}

    def forget(self) -> None:
        """Removes the databases that a test made."""
        if self._made:
            self._server.execute(*(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)" for name in self._made))
            self._made.clear()


Databases = SqliteFiles | PostgresqlDatabases


@pytest.fixture(scope="session", params=["postgresql", "sqlite"])
def databases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Databases:
    """The databases of one backend, for the whole session."""
    if request.param == "postgresql":
        return PostgresqlDatabases(request.getfixturevalue("postgresql_server"))
    return SqliteFiles(tmp_path_factory.mktemp("store"))


@pytest.fixture
def backend(databases: Databases) -> Iterator[Databases]:
    """The databases of one backend; a new backend is added here, with tests of its own in a folder here.

    All tests in this folder, but for those in the folders of backends, are what every backend has to keep.
    """
    yield databases
    databases.forget()


@pytest.fixture
def nowhere(backend: Databases, tmp_path: Path) -> str:
    """An address at which there is no database yet."""
    return backend.nowhere(tmp_path)


@pytest.fixture
def address(backend: Databases, tmp_path: Path) -> str:
    """An address of a database without a sweep."""
    return backend.make(tmp_path)


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    with open_database(address, write=True) as opened:
        yield opened


@pytest.fixture
def statements() -> Statements:
    """The statements that are sent within a block, to whatever database."""

    @contextmanager
    def statements() -> Iterator[list[str]]:
        seen: list[str] = []

        def hear(connection: object, cursor: object, statement: str, *rest: object) -> None:
            seen.append(statement)

        event.listen(Engine, "before_cursor_execute", hear)
        yield seen
        event.remove(Engine, "before_cursor_execute", hear)

    return statements


@pytest.fixture
def plan_of() -> PlanOf:
    """A plan of cells that differ in the seed of their generated corpus."""

    def plan_of(cells: int | list[int] = 2, seeds: int | list[int] = 2, name: str = "demo") -> Plan:
        numbers = range(cells) if isinstance(cells, int) else cells
        specs = [
            CellSpec.model_validate({"task": "translation", "data": {"corpus": "toy", "seed": number}})
            for number in numbers
        ]
        planned = tuple(
            PlannedCell(cell_id(spec), ordinal, {"kernel": f"number {spec.data.seed}"}, spec)
            for ordinal, spec in enumerate(specs)
        )
        return Plan(name, planned, tuple(range(seeds) if isinstance(seeds, int) else seeds))

    return plan_of


@pytest.fixture
def sweep_id(database: Database, plan_of: PlanOf) -> int:
    """Two cells with two seeds: runs 1 to 4."""
    return register(database, plan_of())


@pytest.fixture
def hand(database: Database, sweep_id: int) -> RunWriter:
    """A run with a number and a text."""
    attempt = claims.claim(database, 1, "me", 60)
    assert attempt is not None
    hand = RunWriter(database, 1, "me", attempt)
    hand.record([("train/loss", 1, 1.0)], 1)
    hand.outputs("test/translations", ["ein Hund", "eine Katze"])
    return hand


@pytest.fixture
def in_processes() -> InProcesses:
    """Runs a function in so many processes at once; what each returned, or its traceback."""

    def in_processes(function: Callable[[], object], count: int = 1, *, unprivileged: bool = False) -> list[str]:
        context = multiprocessing.get_context("fork")
        results = context.SimpleQueue()

        def work() -> None:
            try:
                # Permissions do not bind root.
                if unprivileged and os.getuid() == 0:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                results.put(str(function()))
            except BaseException:
                results.put(traceback.format_exc())

        processes = [context.Process(target=work) for _ in range(count)]
        for process in processes:
            process.start()
        answers = [results.get() for _ in processes]
        for process in processes:
            process.join()
        return answers

    return in_processes

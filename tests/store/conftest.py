"""The contract of the store: what every backend keeps, and what its tests may use."""

import multiprocessing
import os
import shutil
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from kdx.grid.identity import cell_id
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.store.backends import BACKENDS
from kdx.store.database import Database, open_database
from kdx.store.recording import register

sys.path.insert(0, str(Path(__file__).parent))

PlanOf = Callable[..., Plan]
InProcesses = Callable[..., list[str]]
Statements = Callable[[], AbstractContextManager[list[str]]]


class SqliteFiles:
    """Databases of SQLite, as the contract makes and looks at them."""

    def __init__(self, home: Path) -> None:
        # Made once, since each making runs the migrations.
        self._empty = home / "empty.db"
        open_database(self._empty, write=True, create=True).close()

    def nowhere(self, folder: Path) -> str:
        """An address at which there is no database, of which each folder has one."""
        return str(folder / "runs.db")

    def make(self, address: str) -> None:
        """Makes a database without a sweep."""
        shutil.copy(self._empty, address)

    def execute(self, address: str, *statements: str) -> None:
        """As another program might, which heeds no CHECK and no reference."""
        with closing(sqlite3.connect(address, isolation_level=None)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            for statement in statements:
                connection.execute(statement)

    def content(self, address: str) -> object:
        """Equal to what it was before as long as nothing was written; None: there is nothing."""
        return Path(address).read_bytes() if Path(address).exists() else None


KINDS = {"sqlite": SqliteFiles}


@pytest.fixture(scope="session", params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SqliteFiles:
    """The databases of one backend. Whoever adds a backend adds its own to KINDS, and its own tests to a folder here.

    All tests in this folder, but for those in the folders of backends, are what every backend has to keep.
    """
    return KINDS[request.param](tmp_path_factory.mktemp("store"))


@pytest.fixture
def nowhere(backend: SqliteFiles, tmp_path: Path) -> str:
    """An address at which there is no database yet."""
    return backend.nowhere(tmp_path)


@pytest.fixture
def address(backend: SqliteFiles, nowhere: str) -> str:
    """An address of a database without a sweep."""
    backend.make(nowhere)
    return nowhere


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
    return register(database, plan_of(), {"tables": []})


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

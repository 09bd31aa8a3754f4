import multiprocessing
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdx.grid.identity import cell_id
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.store.database import Database, open_database
from kdx.store.recording import register

PlanOf = Callable[..., Plan]
InProcesses = Callable[..., list[str]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without a sweep, made once, since each making runs the migrations."""
    path = tmp_path_factory.mktemp("store") / "empty.db"
    open_database(path, write=True, create=True).close()
    return path


@pytest.fixture
def database(path: Path, empty: Path) -> Iterator[Database]:
    shutil.copy(empty, path)
    with open_database(path, write=True) as opened:
        yield opened


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


@pytest.fixture
def common_folder() -> Iterator[Path]:
    """A folder that every user may enter and write, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="kdx-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)

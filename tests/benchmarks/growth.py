"""How the cost of bookkeeping grows with the runs of a sweep and their metric rows: processor time and peak memory.

Each database has one sweep whose runs are all completed: many cells with ten seeds, or a hundred cells with many seeds.
Each command is a process of its own, in which importing torch is an error. An exponent k says that what a command takes
beyond the smallest sweep grows with the k-th power of the runs, from the second largest sweep to the largest; growth
that is smaller than a noisy machine's counts as none. What a sweep does for a hundred runs, from their claims to their
ends, should hardly depend on how many others it has.

Measure other sizes by `python -m tests.benchmarks.growth 100 1000 10000 100000`.
"""

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, NamedTuple

from sqlalchemy import bindparam, insert, literal, select, true, update

from kdx.cli.progress import Lines
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter, keep_once, register
from kdx.store.records import RunState
from kdx.store.schema import attempt, bits_of, metric, run
from kdx.store.schema import environment as environment_table
from kdx.sweep.messages import Work
from kdx.sweep.plan_forecast import expected_seconds
from kdx.sweep.supervisor import Supervisor
from tests.benchmarks.scale import server_seconds, started_server
from tests.postgresql_server import PostgresqlServer, programs

SIZES, ROWS = (100, 1_000, 10_000), 100
"""Runs of the sweeps, and metric rows of each run."""
SEEDS, CELLS = 10, 100
"""Seeds of a cell where the cells grow, and cells where the seeds do."""
SHAPES: dict[str, Callable[[int], tuple[int, int]]] = {
    "cells": lambda runs: (runs // SEEDS, SEEDS),
    "seeds": lambda runs: (CELLS, runs // CELLS),
}
"""What grows → number of cells and of seeds for a number of runs."""
FINISHED = 100
"""Runs that a sweep starts and finishes."""
LIMIT, LIMIT_OF_RUNS = 1.2, 0.6
"""Largest exponent of a command, and of finished runs; sorting takes n log n, of exponent 1.1 here."""
LEAST_SECONDS, LEAST_MEGABYTES = 0.2, 20.0
"""Growth that counts as none."""

PLANNED = ["grid.yaml", "--max-runs", "1000000"]
COMMANDS: dict[str, list[str]] = {
    "sweep": ["sweep", *PLANNED, "--workers", "2"],
    "plan": ["plan", *PLANNED],
    "status": ["status"],
    "status SWEEP": ["status", "growth"],
    "show RUN": ["show", "1"],
    "diff RUN RUN": ["diff", "1", "2"],
    "report": ["report"],
    "report --json": ["report", "--json"],
    "report --format html": ["report", "--format", "html"],
}
RUNS = f"{FINISHED} runs"

GRID = """
name: growth
task: prediction
data: {corpus: synthetic-language, train_lines: 100}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {batch_tokens: 256, length: 32}
seeds: SEEDS
axes:
  kernel: [exponential, rbf, linear, polynomial, cosine]
  symmetry: [asymmetric, symmetric]
  training.steps: STEPS
tables:
  - {name: growth, rows: [training.steps, kernel], columns: [symmetry], baseline: {kernel: exponential}}
"""
PEAK = (
    "import atexit, pathlib, sys; sys.modules['torch'] = sys.modules['pytorch_lightning'] = None; "
    "atexit.register(lambda: print(pathlib.Path('/proc/self/status').read_text(), file=sys.stderr)); "
)
"""Has a process print its own peak memory: the system would count the memory of its parent too."""
KDX = "sys.argv[0] = 'kdx'; from kdx.cli.app import main; main()"
FINISH = "from tests.benchmarks.growth import finish; finish(*sys.argv[1:])"


class Cost(NamedTuple):
    """What a process takes."""

    seconds: float
    """Of the processor, with those of a server."""
    megabytes: float
    """Peak resident memory."""


def measure() -> dict[str, Any]:
    """Return what grows → command → seconds and megabytes for each number of runs, and the exponents."""
    return measured(SIZES, ROWS, None)


def measured(sizes: Sequence[int], rows: int, server: PostgresqlServer | None) -> dict[str, Any]:
    """Return the same for other sizes, and for databases of a server."""
    result: dict[str, Any] = {"metric rows of a run": rows}
    within = True
    for shape, cells_and_seeds in SHAPES.items():
        costs: dict[str, list[Cost]] = {}
        for runs in sizes:
            with tempfile.TemporaryDirectory() as folder:
                for name, cost in _of_size(Path(folder), *cells_and_seeds(runs), rows, server):
                    costs.setdefault(name, []).append(cost)
                    print(f"{shape} {runs} {name}: {cost}", file=sys.stderr)
        result[shape] = {name: _grown(sizes, of_command) for name, of_command in costs.items()}
        within &= all(
            max(grown["exponents"].values()) <= (LIMIT_OF_RUNS if name == RUNS else LIMIT)
            for name, grown in result[shape].items()
        )
    return {**result, "limits": {"commands": LIMIT, RUNS: LIMIT_OF_RUNS}, "within": within}


def _of_size(
    folder: Path, cells: int, seeds: int, rows: int, server: PostgresqlServer | None
) -> Iterator[tuple[str, Cost]]:
    plan = planned(folder, cells, seeds)
    for name in ("finished", "pending"):
        address = f"{folder / name}.db"
        if server is not None:
            server.execute(f"CREATE DATABASE {name}")
            address = server.address(name)
        with open_database(address, write=True, create=True) as database:
            register(database, plan)
            if name == "finished":
                fill(database, rows)
        environment = {"KDX_DB": address, "KDX_FILES": str(folder)}
        for what, words in COMMANDS.items() if name == "finished" else ():
            yield what, _cost(KDX, words, folder, environment, server)
        if name == "pending":
            yield RUNS, _cost(FINISH, [address, str(cells), str(seeds)], folder, environment, server)
        if server is not None:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def planned(folder: Path, cells: int, seeds: int) -> Plan:
    """Return the plan of a grid with so many cells and seeds, which is written to `grid.yaml`."""
    steps = [1001 + number for number in range(-(-cells // 10))]
    (folder / "grid.yaml").write_text(GRID.replace("SEEDS", str(seeds)).replace("STEPS", str(steps)))
    return load_grid(folder / "grid.yaml", most_runs=1_000_000)


def fill(database: Database, rows: int) -> None:
    """Complete every run of a database, with `rows` metric rows each."""
    rng = random.Random(0)
    numbers = {"test/loss": 1, "test/perplexity": 1, "test/accuracy": 1, "valid/loss": 10, "valid/perplexity": 10}
    numbers["train/loss"] = max(1, rows - sum(numbers.values()))
    count = select(literal(0).label("step")).cte("steps", recursive=True)
    steps = count.union_all(select(count.c.step + 1).where(count.c.step < max(numbers.values()) - 1))
    with database.write() as connection:
        place = keep_once(connection, database, environment_table, {"torch": "2", "python": "3", "threads": 1})
        scores = []
        for run_id in connection.scalars(select(run.c.id)).all():
            valid, test = rng.gauss(30, 1), rng.gauss(30, 1)
            scores.append({"which": run_id, "v": valid, "v_bits": bits_of(valid), "t": test, "t_bits": bits_of(test)})
        completed = update(run).values(
            state=RunState.COMPLETED,
            owner="somebody",
            attempt=1,
            progress_step=1000,
            valid_step=900,
            valid_score=bindparam("v"),
            valid_bits=bindparam("v_bits"),
            test_score=bindparam("t"),
            test_bits=bindparam("t_bits"),
            definitions={"valid/perplexity": "invented", "test/perplexity": "invented"},
            environment_id=place,
        )
        connection.execute(completed.where(run.c.id == bindparam("which")), scores)
        tried = {"number": 1, "owner": "somebody", "started": 0.0, "ended": 60.0, "first_step": 0, "last_step": 1000}
        columns = [run.c.id, literal(RunState.COMPLETED.value), *map(literal, tried.values())]
        connection.execute(insert(attempt).from_select(["run_id", "outcome", *tried], select(*columns)))
        row = {"value": 1.5, "bits": bits_of(1.5), "writes": 1, "differs": 0}
        for name, number in numbers.items():
            columns = [run.c.id, literal(name), steps.c.step, *map(literal, row.values())]
            rows_of_name = select(*columns).join_from(run, steps, true()).where(steps.c.step < number)
            connection.execute(insert(metric).from_select(["run_id", "name", "step", *row], rows_of_name))


def _cost(
    code: str, words: Sequence[str], folder: Path, environment: Mapping[str, str], server: PostgresqlServer | None
) -> Cost:
    """Return what a process takes that runs Python code with these arguments; it may report its seconds itself."""
    before, of_server = getrusage(RUSAGE_CHILDREN), server_seconds(server)
    done = subprocess.run(
        [sys.executable, "-c", PEAK + code, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    after = getrusage(RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime + server_seconds(server) - of_server
    *_, peak = re.findall(r"VmHWM:\s+(\d+) kB", done.stderr)
    if own := re.findall(r"^seconds (\S+)$", done.stderr, re.MULTILINE):
        seconds = float(own[0])
    return Cost(round(seconds, 2), round(int(peak) / 1000))


def _grown(sizes: Sequence[int], costs: Sequence[Cost]) -> dict[str, Any]:
    least = Cost(LEAST_SECONDS, LEAST_MEGABYTES)
    return {
        **{name: dict(zip(sizes, of_size, strict=True)) for name, *of_size in zip(Cost._fields, *costs, strict=True)},
        "exponents": {
            name: round(exponent(sizes, of_size, none), 2)
            for name, none, *of_size in zip(Cost._fields, least, *costs, strict=True)
        },
    }


def exponent(sizes: Sequence[int], costs: Sequence[float], none: float) -> float:
    """Return k, where what is taken beyond the first size grows with the k-th power of the sizes.

    Args:
        none: growth that counts as none.
    """
    before, last = (max(cost - costs[0], none) for cost in costs[-2:])
    return math.log(last / before) / math.log((sizes[-1] - sizes[0]) / (sizes[-2] - sizes[0]))


class _Enough(BaseException):
    """So many runs are finished."""


class _Host:
    """A host whose runs are completed as soon as they start."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ended: deque[dict[str, Any]] = deque()
        self._started = 0
        self.since = time.process_time()
        """Seconds of the processor before the first run."""

    def start(self, work: Work, within: float) -> bool:
        if self._started == 0:
            self.since = time.process_time()
        if self._started == FINISHED:
            raise _Enough
        RunWriter(self._database, work.run_id, work.lease_holder, work.attempt or 1).complete(1.0, 1, 1.0, {}, 1)
        self._ended.append({"event": "exit", "run": work.run_id, "code": 0})
        self._started += 1
        return True

    def listen(self, seconds: float) -> dict[str, Any] | None:
        return self._ended.popleft() if self._ended else None

    def wake(self) -> None: ...

    def signal(self, signum: int, run_id: int | None = None) -> None: ...

    def close(self, *, at_once: bool) -> None: ...


def finish(address: str, cells: str, seeds: str) -> None:
    """Finish runs of a sweep of so many cells and seeds, as `kdx sweep` does, and print the seconds that they take."""
    plan = planned(Path.cwd(), int(cells), int(seeds))
    with open_database(address, write=True) as database:
        lines = Lines(plan, workers=2, expect=lambda: expected_seconds(database, plan))
        host = _Host(database)
        with suppress(_Enough):
            Supervisor(lambda: (plan,), database, 2, lines, host).run()
        print("seconds", time.process_time() - host.since, file=sys.stderr)


@contextmanager
def _server(wanted: bool) -> Iterator[PostgresqlServer | None]:
    there = programs() if wanted else None
    if there is None:
        yield None
    else:
        with started_server(there) as server:
            yield server


def main() -> None:
    """Measure the sizes of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, help="runs of the sweeps, three sizes or more")
    parser.add_argument("--rows", type=int, default=ROWS, help="metric rows of each run")
    parser.add_argument("--postgresql", action="store_true", help="on a server, which is started here")
    options = parser.parse_args()
    with _server(options.postgresql) as server:
        json.dump(measured(options.sizes, options.rows, server), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()

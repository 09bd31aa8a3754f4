"""What a run costs by kdx and by others (make bench-peers), and what is left when they are killed. Markdown on stdout.

Each tool runs the same one-step runs, as a whole process from its command to its end. The tools take turns, so that a
noisy machine disturbs all alike. Then each is killed when half of its runs are done, and its command is repeated.
"""

import argparse
import datetime
import os
import platform
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.orchestration import GRID
from tests.benchmarks.orchestration.one_run import one_run

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[3]
RUNS, ROUNDS = 40, 3
PYTHON = sys.executable


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def _of_sql(database: Path, statement: str) -> int:
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute(statement).fetchone()[0])
    return 0


@dataclass(frozen=True)
class Tool:
    """A tool, as its user starts it."""

    name: str
    command: Callable[[int], list[str]]
    """Number of runs → the command."""
    results: Callable[[Path], int]
    """Folder → how many results it holds."""
    runs: Callable[[Path], int]
    """Folder → how many runs were started for them, those that were killed included."""
    written: str
    """The file that the user writes."""
    rounds: int = ROUNDS


def _script(name: str, *more: str) -> Callable[[int], list[str]]:
    return lambda runs: [PYTHON, str(HERE / name), str(runs), *more]


def _hydra(*more: str) -> Callable[[int], list[str]]:
    seeds = "hydra.sweep.dir=multirun"
    return lambda runs: [PYTHON, str(HERE / "by_hydra.py"), "-m", f"seed=range({runs})", seeds, *more]


def _kdx(workers: int) -> Callable[[int], list[str]]:
    kdx = str(Path(PYTHON).parent / "kdx")
    return lambda runs: [kdx, "sweep", "grid.yaml", "--workers", str(workers), "--set", f"seeds={runs}"]


def _in_lines(folder: Path) -> int:
    return _lines(folder / "results.txt")


def _in_study(folder: Path) -> int:
    return _of_sql(folder / "study.db", "SELECT count(*) FROM trials WHERE state = 'COMPLETE'")


def _trials(folder: Path) -> int:
    return _of_sql(folder / "study.db", "SELECT count(*) FROM trials")


def _in_folders(folder: Path) -> int:
    return len(list(folder.glob("multirun/*/result.txt")))


def _in_ray(folder: Path) -> int:
    return len([path for path in folder.glob("results/peers/*/result.json") if path.stat().st_size])


def _in_kdx(folder: Path) -> int:
    return _of_sql(folder / "runs.db", "SELECT count(*) FROM run WHERE state = 'completed'")


def _attempts(folder: Path) -> int:
    return _of_sql(folder / "runs.db", "SELECT count(*) FROM attempt")


TOOLS = (
    Tool("loop in one process", _script("by_loop.py"), _in_lines, _in_lines, "by_loop.py"),
    Tool("Optuna, one process", _script("by_optuna.py", "1"), _in_study, _trials, "by_optuna.py"),
    Tool("Optuna, two processes", _script("by_optuna.py", "2"), _in_study, _trials, "by_optuna.py"),
    Tool("Hydra, basic launcher", _hydra(), _in_folders, _in_folders, "by_hydra.py"),
    Tool(
        "Hydra, joblib, two processes",
        _hydra("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
        _in_folders,
        _in_folders,
        "by_hydra.py",
    ),
    Tool("kdx, one worker", _kdx(1), _in_kdx, _attempts, "grid.yaml"),
    Tool("kdx, two workers", _kdx(2), _in_kdx, _attempts, "grid.yaml"),
    Tool("Ray Tune, two processors", _script("by_ray.py"), _in_ray, _in_ray, "by_ray.py", rounds=1),
    Tool("one process per run", _script("by_process.py"), _in_lines, _in_lines, "by_process.py", rounds=1),
)


def _start(tool: Tool, runs: int, folder: Path) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RAY_AIR_NEW_OUTPUT": "0", "HYDRA_FULL_ERROR": "1"}
    (folder / "grid.yaml").write_text(GRID)
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            tool.command(runs), cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )


def _run(tool: Tool, runs: int, folder: Path) -> float:
    """Run the command to its end and return its seconds."""
    start = time.perf_counter()
    process = _start(tool, runs, folder)
    if process.wait():
        raise SystemExit(f"{tool.name} failed:\n{(folder / 'log.txt').read_text()[-2000:]}")
    return time.perf_counter() - start


def _tree(pid: int) -> list[int]:
    """A process and all that descend from it."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    below = [int(child) for child in children.read_text().split()] if children.exists() else []
    return [pid, *(process for child in below for process in _tree(child))]


def _kill(tool: Tool, runs: int, folder: Path) -> int:
    """Kill every process of the command when half of its runs are done, and return how many results are left."""
    process = _start(tool, runs, folder)
    while tool.results(folder) < runs // 2 and process.poll() is None:
        time.sleep(0.01)
    for pid in _tree(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    time.sleep(1.0)  # processes whose parent died end
    return tool.results(folder)


def _lines_written(name: str) -> int:
    """Lines that a user writes beside the run itself, without blank ones, comments and docstrings."""
    text = GRID if name.endswith(".yaml") else (HERE / name).read_text()
    lines = [line.strip() for line in text.splitlines()]
    return len([line for line in lines if line and not line.startswith(("#", '"""'))])


def measure(tools: tuple[Tool, ...], runs: int, rounds: int) -> str:
    """Return the table in Markdown."""
    one_run(0)  # prepares the corpus
    seconds: dict[str, list[tuple[float, float]]] = {tool.name: [] for tool in tools}
    killed: dict[str, tuple[int, int, int]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for turn in range(rounds):
            for tool in tools:
                if turn < tool.rounds:
                    times = []
                    for count in (1, runs):
                        folder = Path(temporary) / "folder"
                        folder.mkdir()
                        times.append(_run(tool, count, folder))
                        shutil.rmtree(folder)
                    seconds[tool.name].append((times[0], times[1]))
        for number, tool in enumerate(tools):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            left, before = _kill(tool, runs, folder), tool.runs(folder)
            _run(tool, runs, folder)
            killed[tool.name] = left, tool.runs(folder) - before, tool.results(folder)
    rows = [
        f"| | {runs} runs, s | each further run, s | left by kill -9 at half | runs by the command repeated | "
        "results then | lines written |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for tool in tools:
        whole = statistics.median(many for _, many in seconds[tool.name])
        a_run = statistics.median((many - one) / (runs - 1) for one, many in seconds[tool.name])
        left, repeated, then = killed[tool.name]
        written = _lines_written(tool.written)
        rows.append(f"| {tool.name} | {whole:.1f} | {a_run:.3f} | {left} | {repeated} | {then} | {written} |")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    rows.append(f"\n{datetime.date.today()}, {machine}; medians of {rounds} rounds")
    return "\n".join(rows)


def main() -> None:
    """Measure all tools, or those whose name contains a word."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.orchestration", description=__doc__)
    parser.add_argument("tools", nargs="*", help="words in the names of tools; all if none is given")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    wanted = tuple(tool for tool in TOOLS if not given.tools or any(word in tool.name for word in given.tools))
    print(measure(wanted, given.runs, given.rounds))


if __name__ == "__main__":
    main()

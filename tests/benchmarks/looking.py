"""`kdx status`, `show` and `diff` on a database of 100,000 runs, and what a shell waits for a completion.

Of a command its time beyond that of an interpreter that does nothing is promised; of a completion, that it takes no
more than half again as long as the help.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from kdx.grid.load import load_grid
from kdx.store.database import open_database
from kdx.store.recording import register
from tests.benchmarks import report

SWEEPS, SEEDS, ROWS, ROUNDS = 100, 10, 60, 7
LIMIT_SECONDS, LIMIT_RATIO = 0.5, 1.5
COMMANDS: dict[str, list[str]] = {
    "status": ["status"],
    "status_of_a_sweep": ["status", "large-3"],
    "show_run": ["show", "5000"],
    "show_sweep": ["show", "large-3"],
    "show_curves": ["show", "5000", "--curves"],
    "diff_runs": ["diff", "5000", "5001"],
    "diff_sweeps": ["diff", "large-2", "large-3"],
}
COMPLETIONS: dict[str, list[str]] = {
    "sweeps": ["status", ""],
    "runs": ["logs", "5"],
    "cells": ["show", "a"],
    "choices": ["status", "large-3", "ker"],
    "settings": ["plan", "quickstart", "--set", "training."],
}


def measure() -> dict[str, object]:
    """Median seconds of whole processes."""
    kdx = str(Path(sys.executable).parent / "kdx")
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "runs.db"
        runs = _generate(database)
        commands = {name: [kdx, *words, "--db", str(database)] for name, words in COMMANDS.items()}
        timed = {"interpreter": [sys.executable, "-c", ""], "help": [kdx, "--help"], **commands}
        seconds: dict[str, list[float]] = {name: [] for name in (*timed, *COMPLETIONS)}
        environment = os.environ | {"KDX_DB": str(database), "_KDX_COMPLETE": "complete_bash"}
        for _ in range(ROUNDS):
            for name, command in timed.items():
                seconds[name].append(_run(command, dict(os.environ)))
            for name, words in COMPLETIONS.items():
                asked = {"COMP_WORDS": "\n".join(["kdx", *words]), "COMP_CWORD": str(len(words))}
                seconds[name].append(_run([kdx], environment | asked))
    medians = {name: median(values) for name, values in seconds.items()}
    beyond = {name: round(medians[name] - medians["interpreter"], 3) for name in commands}
    ratio = {name: round(medians[name] / medians["help"], 2) for name in COMPLETIONS}
    return {
        "runs": runs,
        "seconds_beyond_the_interpreter": beyond,
        "most_seconds": LIMIT_SECONDS,
        "completion_to_help": ratio,
        "most_to_help": LIMIT_RATIO,
        "within": all(one <= LIMIT_SECONDS for one in beyond.values())
        and all(one <= LIMIT_RATIO for one in ratio.values()),
    }


def _generate(path: Path) -> int:
    """Sweeps of the grid of `kdx report`, with other steps each, of which every run is completed; how many runs."""
    grid = path.with_suffix(".yaml")
    runs = 0
    with open_database(path, write=True, create=True) as database:
        for number in range(SWEEPS):
            text = report.GRID.replace("SEEDS", str(SEEDS)).replace("name: large\ntask", f"name: large-{number}\ntask")
            grid.write_text(f"{text}training: {{steps: {1000 + number}}}\n")
            plan = load_grid(grid)
            register(database, plan, plan.grid)
            runs += len(plan.runs)
    report.fill(path, ROWS)
    return runs


def _run(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start

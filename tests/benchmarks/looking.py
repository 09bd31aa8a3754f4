"""Commands that look, on a database of 100,000 runs: `kdx plan`, `status`, `show`, `diff`, `explain`, and completions.

Times are of the processor, of whole processes, so that other programs on the machine count for little; each command has
one thread. kdx is compiled, and what it read of its own sources is kept, as after its first command on a machine.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from kdx.grid.load import load_grid
from kdx.store.database import open_database
from kdx.store.recording import register
from tests.benchmarks import report

STEPS, WIDTHS, SEEDS = 10, 10, 9
"""The large sweep has 100 cells for each number of steps and each width. The last seed of all is not trained yet."""
SWEEPS, SEEDS_OF_OTHERS = 10, 10
"""Sweeps of 100 cells beside it, all completed."""
ROWS, ROUNDS = 60, 7

MOST_SECONDS = {"plan": 3.0}
MOST_BEYOND_HELP = {"status": 0.5}
"""Seconds beyond those of the help."""
MOST_TO_HELP = {"explain": 1.5, **dict.fromkeys(("sweeps", "runs", "cells", "choices", "settings"), 1.5)}
"""Times those of the help."""

COMMANDS: dict[str, list[str]] = {
    "help": ["--help"],
    "plan": ["plan", "large.yaml", "--set", "seeds=1"],
    "status": ["status"],
    "status_of_the_large_sweep": ["status", "large"],
    "status_of_a_sweep": ["status", "small-3"],
    "show_run": ["show", "5000"],
    "show_sweep": ["show", "small-3"],
    "show_curves": ["show", "5000", "--curves"],
    "diff_runs": ["diff", "5000", "5001"],
    "explain": ["explain", "rbf"],
}
COMPLETIONS: dict[str, list[str]] = {
    "sweeps": ["status", ""],
    "runs": ["logs", "5"],
    "cells": ["show", "a"],
    "choices": ["status", "small-3", "ker"],
    "settings": ["plan", "quickstart", "--set", "training."],
}


def measure() -> dict[str, object]:
    """Median processor seconds of each command and completion, and their ratio to the help's."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        runs = generate(folder)
        environment = os.environ | {
            "KDX_DB": str(folder / "runs.db"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        asked = {name: (words, environment) for name, words in COMMANDS.items()} | {
            name: ([], environment | _completing(words)) for name, words in COMPLETIONS.items()
        }
        seconds: dict[str, list[float]] = {name: [] for name in asked}
        for of_round in range(ROUNDS + 1):
            for name, (words, its) in asked.items():
                one = _run(words, folder, its)
                if of_round:  # the first one compiles
                    seconds[name].append(one)
    took = {name: median(values) for name, values in seconds.items()}
    most = {name: limit for name, limit in MOST_SECONDS.items() if name in took}
    most |= {name: took["help"] + limit for name, limit in MOST_BEYOND_HELP.items() if name in took}
    most |= {name: took["help"] * limit for name, limit in MOST_TO_HELP.items() if name in took}
    return {
        "runs": runs,
        "processor_seconds": {name: round(one, 3) for name, one in took.items()},
        "to_help": {name: round(one / took["help"], 2) for name, one in took.items()},
        "most_seconds": {name: round(one, 3) for name, one in most.items()},
        "within": all(took[name] <= limit for name, limit in most.items()),
    }


def generate(folder: Path) -> int:
    """Makes `runs.db`, and `large.yaml` of its large sweep.

    Returns:
        How many runs it has.
    """
    axes = [
        f"  training.steps: [{', '.join(str(1000 + number) for number in range(STEPS))}]",
        f"  model.inner: [{', '.join(str(64 * number) for number in range(1, WIDTHS + 1))}]",
    ]
    large = report.GRID.partition("tables:")[0].replace("axes:", "\n".join(["axes:", *axes]))
    _register(folder, "large", large.replace("SEEDS", str(SEEDS - 1)))
    runs = 0
    for number in range(SWEEPS):
        small = report.GRID.replace("SEEDS", str(SEEDS_OF_OTHERS)).replace("name: large", f"name: small-{number}", 1)
        runs += _register(folder, f"small-{number}", f"{small}training: {{steps: {2000 + number}}}\n")
    report.fill(folder / "runs.db", ROWS)
    return runs + _register(folder, "large", large.replace("SEEDS", str(SEEDS)))


def _register(folder: Path, name: str, text: str) -> int:
    """Plans a grid; how many runs the sweep has."""
    grid = folder / f"{name}.yaml"
    grid.write_text(text)
    plan = load_grid(grid, most_runs=1_000_000)
    with open_database(folder / "runs.db", write=True, create=True) as database:
        register(database, plan, plan.grid)
    return len(plan.runs)


def _completing(words: list[str]) -> dict[str, str]:
    """What bash says of a command line whose last word is to be completed."""
    command_line = "\n".join(["kdx", *words])
    return {"_KDX_COMPLETE": "complete_bash", "COMP_WORDS": command_line, "COMP_CWORD": str(len(words))}


def _run(words: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Processor seconds of a kdx command."""
    before = getrusage(RUSAGE_CHILDREN)
    command = [str(Path(sys.executable).parent / "kdx"), *words]
    subprocess.run(
        command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

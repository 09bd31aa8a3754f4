"""Cost of a run: fork, data, one step, validation, test, checkpoint and commits; no training to speak of."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.orchestration import GRID

RUNS = 40
LIMIT = 0.07  # seconds


def measure() -> dict[str, object]:
    """(wall of 40 one-step runs − wall of 1) / 39, with one worker."""
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "grid.yaml"
        grid.write_text(GRID)
        kdx = str(Path(sys.executable).parent / "kdx")

        def wall(runs: int) -> float:
            command = [kdx, "sweep", str(grid), "--workers", "1", "--set", f"seeds={runs}"]
            database = Path(folder) / f"runs-{runs}-{time.monotonic_ns()}.db"
            start = time.perf_counter()
            subprocess.run([*command, "--db", str(database)], check=True, capture_output=True)
            return time.perf_counter() - start

        wall(1)  # prepares the corpus
        one, many = wall(1), wall(RUNS)
    cost = (many - one) / (RUNS - 1)
    return {
        "seconds_one": round(one, 2),
        f"seconds_{RUNS}": round(many, 2),
        "seconds_a_run": round(cost, 3),
        "limit": LIMIT,
        "within": cost <= LIMIT,
    }

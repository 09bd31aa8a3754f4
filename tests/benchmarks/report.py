"""`kdx report` of a 100-cell table, and `kdx query`, on a database of 10,000 runs with 1,000 metric rows each.

The page that holds all of it, curves and runs, is written too: its size is what is promised. A second database has ten
times the seeds, of which the table, its JSON and the page are made.
"""

import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import IO

from kdx.grid.load import load_grid
from kdx.store.database import open_database
from kdx.store.recording import register
from kdx.store.schema import bits_of

CELLS, SEEDS, ROWS = 100, 100, 1000
ROUNDS = 5
LIMIT_PAGE_MEGABYTES = 5
MANY_SEEDS, FEW_ROWS = 1000, 60
MANY: dict[str, tuple[list[str], float | None, float | None]] = {
    "report": (["report", "large"], 6.0, None),
    "json": (["report", "large", "--json"], 6.0, None),
    "html": (["report", "large", "--format", "html"], None, 500),
}
CURVE = "SELECT step, value FROM curves WHERE run_id = 7777 AND name = 'train/loss' ORDER BY step"
SELECTED = "SELECT cell_id, labels, seed, test_score FROM runs WHERE selected"
# Command → most seconds and megabytes; those without are told only.
COMMANDS: dict[str, tuple[list[str], float | None, float | None]] = {
    "report": (["report", "large"], 2.0, 300),
    "query_curve": (["query", CURVE], 0.5, None),
    "query_selected": (["query", SELECTED], None, None),
    "trace": (["trace", "large", "Sum / rbf", "symmetric / post"], None, None),
}

GRID = """
name: large
task: translation
data: {corpus: synthetic-translation}
seeds: SEEDS
approaches:
  No position: {position: none}
  Sum: {position: direct-sum, inject: per-layer}
  Look-up: {position: lookup}
  Relative: {position: relative}
  Product: {position: product}
axes:
  kernel: [linear, polynomial, exponential, rbf, cosine]
  symmetry: [asymmetric, symmetric]
  norm: [post, pre]
tables:
  - {name: large, rows: [approach, kernel], columns: [symmetry, norm], baseline: {approach: Sum}}
"""


def measure() -> dict[str, object]:
    """Median seconds and largest memory of whole processes, in which importing torch is an error."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "runs.db"
        generate(database, ROWS, SEEDS)
        size = round(database.stat().st_size / 1e6)
        measured = {name: _measured(*asked, database, ROUNDS) for name, asked in COMMANDS.items()}
        page = Path(folder) / "report.html"
        with page.open("w") as stream:
            seconds, megabytes = _run(["report", "large", "--db", str(database), "--format", "html"], stream)
        weight = page.stat().st_size / 1e6
        database.unlink()
        generate(database, FEW_ROWS, MANY_SEEDS)
        many = {name: _measured(*asked, database, rounds=1) for name, asked in MANY.items()}
        html = {"seconds": round(seconds, 2), "megabytes": round(megabytes), "page megabytes": round(weight, 2)}
        return {
            "runs": CELLS * SEEDS,
            "metric_rows": CELLS * SEEDS * ROWS,
            "database_megabytes": size,
            **measured,
            "html": html,
            "many": many,
            "within": all(measured_command["within"] for measured_command in (*measured.values(), *many.values()))
            and weight <= LIMIT_PAGE_MEGABYTES,
        }


def _measured(
    words: list[str], seconds: float | None, megabytes: float | None, database: Path, rounds: int
) -> dict[str, object]:
    times, peaks = zip(*(_run([*words, "--db", str(database)]) for _ in range(rounds)), strict=True)
    took, peak = median(times), max(peaks)
    return {
        "seconds": round(took, 2),
        "megabytes": round(peak),
        "limits": {"seconds": seconds, "megabytes": megabytes},
        "within": (seconds is None or took <= seconds) and (megabytes is None or peak <= megabytes),
    }


def generate(path: Path, rows: int, seeds: int) -> None:
    """A database in which every run of `GRID` is completed, with `rows` metric rows each."""
    grid = path.with_suffix(".yaml")
    grid.write_text(GRID.replace("SEEDS", str(seeds)))
    plan = load_grid(grid, most_runs=CELLS * seeds)
    assert len(plan.cells) == CELLS and len(plan.seeds) == seeds
    with open_database(path, write=True, create=True) as database:
        register(database, plan, plan.grid)
    fill(path, rows)


def fill(path: Path, rows: int) -> None:
    """Completes every run of a database, with `rows` metric rows each."""
    rng = random.Random(0)
    definitions = '{"valid/bleu": "sacrebleu, of a generator", "test/bleu": "sacrebleu, of a generator"}'
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute(
            'INSERT INTO environment VALUES (?, \'{"torch": "2", "python": "3", "threads": 1}\')', ("e" * 32,)
        )
        scores = []
        for (run,) in connection.execute("SELECT id FROM run").fetchall():
            valid, test = rng.gauss(30, 1), rng.gauss(30, 1)
            scores.append((valid, bits_of(valid), test, bits_of(test), definitions, run))
        connection.executemany(
            "UPDATE run SET state = 'completed', owner = 'o', attempt = 1, progress_step = 1000, valid_step = 900, "
            "valid_score = ?, valid_bits = ?, test_score = ?, test_bits = ?, definitions = ?, data_fingerprint = 'd', "
            f"code_fingerprint = 'c', environment_id = '{'e' * 32}' WHERE id = ?",
            scores,
        )
        connection.execute(
            "INSERT INTO attempt (run_id, number, owner, started, ended, outcome, first_step, last_step) "
            "SELECT id, 1, 'o', 0, 60, 'completed', 0, 1000 FROM run"
        )
        # Seven names of the test and of validation, the rest of training, as in a long run.
        names = {"test/bleu": 1, "test/loss": 1, "test/perplexity": 1, "valid/bleu": 20, "valid/loss": 20}
        names |= dict.fromkeys(("train/learning_rate", "train/loss"), max(0, rows - sum(names.values())) // 2)
        for name, count in names.items():
            connection.execute(
                "WITH RECURSIVE step(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM step WHERE n < ? - 1) "
                "INSERT INTO metric SELECT run.id, ?, n, 1.5, 4609434218613702656, 1, 0 FROM run, step ORDER BY 1, 3",
                (count, name),
            )
        connection.commit()


def _run(words: list[str], stdout: IO[str] | int = subprocess.DEVNULL) -> tuple[float, float]:
    """Return seconds and megabytes of a kdx command, which prints the latter: memory of its parent would count too."""
    script = (
        "import atexit, pathlib, sys; sys.argv[0] = 'kdx'; "
        "sys.modules['torch'] = sys.modules['pytorch_lightning'] = None; "
        "atexit.register(lambda: print(pathlib.Path('/proc/self/status').read_text(), file=sys.stderr)); "
        "from kdx.cli.app import main; main()"
    )
    start = time.perf_counter()
    command = [sys.executable, "-c", script, *words]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=True)
    took = time.perf_counter() - start
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stderr)
    return took, int(peak) / 1000

"""`kdx report` of a 100-cell table on a database of 10,000 runs with 1,000 metric rows each: time and memory.

The page that holds all of it, curves and runs, is written once: its size is what is promised.
"""

import os
import random
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
from kdx.store.schema import bits_of
from kdx.store.writer import register

CELLS, SEEDS, ROWS = 100, 100, 1000
ROUNDS = 5
LIMIT_SECONDS = 2.0
LIMIT_MEGABYTES = 300
LIMIT_PAGE_MEGABYTES = 5

GRID = f"""
name: large
task: translation
data: {{corpus: synthetic-translation}}
seeds: {SEEDS}
approaches:
  No position: {{position: none}}
  Sum: {{position: direct-sum, inject: per-layer}}
  Look-up: {{position: lookup}}
  Relative: {{position: relative}}
  Product: {{position: product}}
axes:
  kernel: [linear, polynomial, exponential, rbf, cosine]
  symmetry: [asymmetric, symmetric]
  norm: [post, pre]
tables:
  - {{name: large, rows: [approach, kernel], columns: [symmetry, norm], baseline: {{approach: Sum}}}}
"""


def measure() -> dict[str, object]:
    """Median seconds and largest memory of whole processes."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "runs.db"
        generate(database)
        seconds, megabytes = [], 0.0
        for _ in range(ROUNDS):
            took, peak = _run([sys.executable, "-m", "kdx", "report", "large", "--db", str(database)])
            seconds.append(took)
            megabytes = max(megabytes, peak)
        page = Path(folder) / "report.html"
        with page.open("wb") as stream:
            html = ["report", "large", "--db", str(database), "--format", "html"]
            html_seconds, html_megabytes = _run([sys.executable, "-m", "kdx", *html], stream)
        page_megabytes = page.stat().st_size / 1e6
        return {
            "runs": CELLS * SEEDS,
            "metric_rows": CELLS * SEEDS * ROWS,
            "database_megabytes": round(database.stat().st_size / 1e6),
            "seconds": round(median(seconds), 2),
            "megabytes": round(megabytes),
            "html": {
                "seconds": round(html_seconds, 2),
                "megabytes": round(html_megabytes),
                "page_megabytes": round(page_megabytes, 2),
            },
            "limits": {
                "seconds": LIMIT_SECONDS,
                "megabytes": LIMIT_MEGABYTES,
                "page_megabytes": LIMIT_PAGE_MEGABYTES,
            },
            "within": median(seconds) <= LIMIT_SECONDS
            and megabytes <= LIMIT_MEGABYTES
            and page_megabytes < LIMIT_PAGE_MEGABYTES,
        }


def generate(path: Path, rows: int = ROWS) -> None:
    """A database in which every run of `GRID` is completed, with `rows` metric rows each."""
    grid = path.with_suffix(".yaml")
    grid.write_text(GRID)
    plan = load_grid(grid)
    assert len(plan.cells) == CELLS and len(plan.seeds) == SEEDS
    with open_database(path, write=True, create=True) as database:
        register(database, plan, plan.grid)
    rng = random.Random(0)
    definitions = '{"valid/bleu": "sacrebleu, of a generator", "test/bleu": "sacrebleu, of a generator"}'
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute('INSERT INTO environment VALUES (\'e\', \'{"torch": "2", "python": "3", "threads": 1}\')')
        scores = []
        for (run,) in connection.execute("SELECT id FROM run").fetchall():
            valid, test = rng.gauss(30, 1), rng.gauss(30, 1)
            scores.append((valid, bits_of(valid), test, bits_of(test), definitions, run))
        connection.executemany(
            "UPDATE run SET state = 'completed', owner = 'o', attempt = 1, progress_step = 1000, valid_step = 900, "
            "valid_score = ?, valid_bits = ?, test_score = ?, test_bits = ?, definitions = ?, data_fingerprint = 'd', "
            "code_fingerprint = 'c', environment_id = 'e' WHERE id = ?",
            scores,
        )
        connection.execute(
            "INSERT INTO attempt (run_id, number, owner, started, ended, outcome, first_step, last_step) "
            "SELECT id, 1, 'o', 0, 60, 'completed', 0, 1000 FROM run"
        )
        # Seven names of the test and of validation, the rest of training, as in a long run.
        names = {"test/bleu": 1, "test/loss": 1, "test/perplexity": 1, "valid/bleu": 20, "valid/loss": 20}
        names |= dict.fromkeys(("train/learning_rate", "train/loss"), (rows - sum(names.values())) // 2)
        for name, count in names.items():
            connection.execute(
                "WITH RECURSIVE step(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM step WHERE n < ? - 1) "
                "INSERT INTO metric SELECT run.id, ?, n, 1.5, 4609434218613702656, 1, 0 FROM run, step ORDER BY 1, 3",
                (count, name),
            )
        connection.commit()


def _run(command: list[str], stdout: IO[bytes] | int = subprocess.DEVNULL) -> tuple[float, float]:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - start
    assert status == 0, status
    return took, usage.ru_maxrss / 1024

"""kdx and all its processes, as a machine has them, and what they left in their database."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from waiting import wait_until

from kdx.store import reading
from kdx.store.database import open_database

GRID = """
name: machine
task: translation
data: {corpus: synthetic-translation, train_lines: 300}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, inner: 16}
training: {steps: 120, batch_tokens: 300, warmup: 5, validate_every: 40, learning_rate: 1e-2}
axes: {kernel: [exponential, rbf]}
select: {metric: loss}
seeds: 2
"""


SECRET = "not-for-anybodys-eyes"


def kdx(folder: Path, *arguments: str, path: tuple[str, ...] = (), **how: Any) -> subprocess.Popen[bytes]:
    """kdx at work in a folder, its words going to `said.txt`; `how` is for Popen, in the place of what is usual."""
    code = os.pathsep.join([*path, str(Path(__file__).parents[2])])
    with (folder / "said.txt").open("ab") as said:
        usual = {
            "cwd": folder,
            "stdout": said,
            "stderr": said,
            "start_new_session": True,
            "env": os.environ | {"PYTHONPATH": code, "SERVICE_TOKEN": SECRET},
        }
        return subprocess.Popen([sys.executable, "-m", "kdx", *arguments], **{**usual, **how})


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in family(int(child)))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def rows(folder: Path) -> dict[tuple[str, int, str, int], int]:
    with open_database(folder / "runs.db", write=False) as database:
        named = {run.id: (run.cell_id, run.seed) for run in reading.load_sweep(database).runs}
        with database.read() as connection:
            found = connection.exec_driver_sql("SELECT run_id, name, step, bits, differs FROM metric").all()
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    assert not any(row.differs for row in found)
    return {(*named[row.run_id], row.name, row.step): row.bits for row in found}


def wait_for_rows(folder: Path, process: subprocess.Popen[bytes], more_than: int) -> None:
    """Waits until the process has recorded more than n rows, or has ended."""

    def recorded() -> bool:
        if not (folder / "runs.db").exists() or not (folder / "runs.db").stat().st_size:
            return False
        try:
            return len(rows(folder)) > more_than
        except Exception as error:
            assert "older kdx" in str(error) or "empty" in str(error) or "no sweep" in str(error), error
            return False

    wait_until(lambda: process.poll() is not None or recorded())

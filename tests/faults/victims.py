"""Runs that are broken off and go on, by the very code that a sweep's workers run, and what they leave behind."""

import hashlib
import os
import pickle
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from kdx.files import is_unfinished
from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording, schema
from kdx.store.database import Database, open_database
from kdx.store.records import FINAL, RunRecord
from kdx.sweep import worker
from kdx.sweep.messages import Work
from kdx.training import lifecycle

SPECS = {
    "translation": """
name: translation
task: translation
data: {corpus: synthetic-translation, train_lines: 300}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, inner: 16, dropout: 0.2}
training: {steps: 40, accumulate: 2, batch_tokens: 300, warmup: 5, validate_every: 7, learning_rate: 1e-2}
position: product
select: {metric: loss}
""",
    "averaged": """
name: averaged
task: translation
data: {corpus: synthetic-translation, train_lines: 300}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, inner: 16, dropout: 0.2}
training: {steps: 40, batch_tokens: 300, warmup: 5, validate_every: 6, average: 3, learning_rate: 1e-2}
select: {metric: loss}
""",
    "prediction": """
name: prediction
task: prediction
data: {corpus: synthetic-language, train_lines: 300}
model: {width: 16, heads: 2, decoder_layers: 2, inner: 16, dropout: 0.2}
training: {steps: 50, batch_tokens: 256, length: 32, warmup: 5, schedule: cosine, validate_every: 11}
position: relative
kernel: rbf
memory: 32
""",
}


@dataclass(frozen=True)
class Left:
    """All that a finished run left behind, bit for bit."""

    rows: dict[tuple[str, int], int]
    """(metric, step) → bits."""
    final: str
    """SHA-256 over weights, buffers and optimiser state at the end of training."""
    weights: tuple[str, ...]
    """SHA-256 of each file of weights that it keeps."""
    scores: tuple[float | None, ...]


class Run:
    """One run in a database of its own."""

    def __init__(self, folder: Path, grid: str) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        (folder / "grid.yaml").write_text(grid)
        plan = load_grid(folder / "grid.yaml")
        (self.cell,) = plan.cells
        with open_database(self.path, write=True, create=True) as database:
            recording.register(database, plan)
        self.attempts = 0

    @property
    def path(self) -> Path:
        return self.folder / "runs.db"

    @property
    def files(self) -> Path:
        return self.folder / "runs.files" / "run"

    def record(self) -> RunRecord:
        with open_database(self.path, write=False) as database:
            (run,) = reading.load_sweep(database).runs
        return run

    def rows(self) -> dict[tuple[str, int], int]:
        """What the database has acknowledged."""
        with open_database(self.path, write=False) as database, database.read() as connection:
            found = connection.execute(schema.metric.select()).all()
        assert not any(row.differs for row in found), "a replay gave other bits"
        return {(row.name, row.step): row.bits for row in found}

    def attempt(self, before: Callable[[], None] = lambda: None) -> int:
        """Starts a worker on the run, which the last attempt left; its process id. `before` runs in it first."""
        owner, self.attempts = f"attempt {self.attempts + 1}", self.attempts + 1
        with open_database(self.path, write=True) as database:
            number = claim(database, self.record().id, owner, f"attempt {self.attempts - 1}")
        assert number == self.attempts
        claimed = Work(self.record().id, number, owner, str(self.path), self.cell.spec.text, 0, str(self.files))
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid:
            here.close()
            there.close()
            return pid
        code = 70
        try:
            # A checkpoint at every step, however long it takes.
            lifecycle.CHECKPOINT_EVERY, lifecycle.CHECKPOINT_SHARE = 0.0, float("inf")
            lifecycle.Lifecycle.on_train_end = lambda _, trainer, module: self._digest(trainer, module)
            torch.set_num_threads(1)
            before()
            code = worker.work(claimed, here)
        finally:
            os._exit(code)

    def to_the_end(self) -> None:
        """Goes on without a fault until the run has ended."""
        while self.record().state not in FINAL:
            os.waitpid(self.attempt(), 0)
            assert self.attempts < 2000
            assert self.record().error is None, self.record().error

    def left(self) -> Left:
        """What the run left; it must be over, once."""
        record = self.record()
        assert record.state in FINAL, record
        with open_database(self.path, write=False) as database:
            ends = [attempt.outcome for attempt in reading.attempts(database, record.id)]
            with database.read() as connection:
                assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        assert ends.count("completed") == 1
        assert not any(is_unfinished(path.name) for path in self.files.iterdir()), "a temporary file was left behind"
        # A kill after the end leaves checkpoints too, which kdx gc removes.
        kept = [
            hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.files.glob("*.ckpt"))
            if not path.name.startswith(("step-", "weights-"))
        ]
        scores = (record.valid_score, record.valid_step, record.test_score)
        return Left(self.rows(), (self.folder / "final").read_text(), tuple(kept), scores)

    def _digest(self, trainer, module) -> None:
        """Keeps the hash of all that training has made; it runs in the worker."""
        digest = hashlib.sha256()
        for name, tensor in sorted(module.state_dict().items()):
            digest.update(name.encode() + tensor.numpy().tobytes())
        for index, state in trainer.optimizers[0].state_dict()["state"].items():
            for name, value in sorted(state.items()):
                digest.update(f"{index} {name}".encode() + torch.as_tensor(value).numpy().tobytes())
        digest.update(pickle.dumps(trainer.lr_scheduler_configs[0].scheduler.state_dict()["last_epoch"]))
        (self.folder / "final").write_text(digest.hexdigest())


def claim(database: Database, run_id: int, owner: str, dead: str) -> int | None:
    """As a sweep claims a run whose worker it has seen die."""
    return claims.claim(database, run_id, owner, 3600.0, [dead])


def killed(pid: int, after: float) -> bool:
    """Kills a process after so many seconds; whether it had not ended before."""
    deadline = time.monotonic() + after
    while time.monotonic() < deadline:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return False
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL

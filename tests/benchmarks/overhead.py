"""What a resumable, recorded run costs of its training time: against Lightning with the same module and batches.

Ours reseeds before each batch, records to a database as a sweep's worker does, and takes checkpoints at its own pace;
plain Lightning does none of it. Both run the mini recipes on generated text with one thread, in turn in one process,
BLOCK steps each, so that what other programs take of the machine falls on both. A validation is in neither.

What the lines of the run's log take of it is measured by itself, for it is less than the others vary.
"""

import os
import socket
import tempfile
import time
from contextlib import redirect_stderr
from pathlib import Path
from threading import Condition, Thread
from typing import Any
from unittest.mock import patch

import pytorch_lightning as lightning
import torch

from kdx.data.corpus import load_corpus
from kdx.grid.load import load_grid
from kdx.grid.spec import CellSpec
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.sweep.recorder import LINE_EVERY, DatabaseRecorder, RunLog
from kdx.tasks import TASKS
from kdx.training import run
from kdx.training.determinism import fix_arithmetic, reseed
from kdx.training.environment import peak_memory
from kdx.training.module import TaskModule
from kdx.training.trainer import training_batches
from tests.benchmarks.throughput import Seconds, Stop, now, since

BLOCK, WARM, STEPS = 5, 20, 300
CALLS = 10_000
MOST = 0.05

GRIDS = {
    "translation": "preset: translation-mini\ndata: {corpus: synthetic-translation, source: null, target: null}\n",
    "prediction": "preset: prediction-mini\ndata: {corpus: synthetic-language}\n",
}


def measure() -> dict[str, object]:
    """Share of training time that kdx adds."""
    threads = torch.get_num_threads()
    try:
        found = {task: _measured(text) for task, text in GRIDS.items()}
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
    return {**found, "most": MOST, "within": all(each["by processor time"] <= MOST for each in found.values())}


def _measured(text: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "grid.yaml"
        grid.write_text(f"name: overhead\n{text}training: {{steps: {STEPS}, validate_every: {STEPS}}}\n")
        plan = load_grid(grid)
        spec = plan.cells[0].spec
        turns = Turns()
        plain = Thread(target=_plain, args=(spec, turns))
        plain.start()
        _ours(Path(folder), plan, spec, turns)
        plain.join()
    # Ours goes on to validate while the other takes its last turn.
    counted = slice(WARM // BLOCK, -1)
    ours, theirs = (Seconds(*map(sum, zip(*turns.taken[who][counted], strict=True))) for who in ("ours", "plain"))
    a_step = ours.busy / (BLOCK * len(turns.taken["ours"][counted]))
    of_a_step, of_a_line = log_seconds()
    return {
        "seconds": round(ours.elapsed, 2),
        "seconds of plain Lightning": round(theirs.elapsed, 2),
        "more": round(ours.elapsed / theirs.elapsed - 1, 3),
        "by processor time": round(ours.busy / theirs.busy - 1, 3),
        "of it lines of the log": round(of_a_step / a_step + of_a_line / LINE_EVERY, 6),
    }


def log_seconds() -> tuple[float, float]:
    """Processor seconds that a run's log takes: of a step without a line, and of a line."""
    log, norm = RunLog(CALLS, "loss", peak_memory), torch.tensor(0.5)

    def a_call() -> float:
        start = time.process_time()
        for step in range(1, CALLS + 1):
            log.progress(step, 4.0, norm)
        return (time.process_time() - start) / CALLS

    with tempfile.TemporaryFile("w") as file, redirect_stderr(file):
        a_call()  # writes the first line
        of_a_step = a_call()
        with patch("kdx.sweep.recorder.LINE_EVERY", 0.0):
            return of_a_step, a_call()


class Turns:
    """Lets one of two threads go on at a time, ours first, and clocks each turn."""

    def __init__(self) -> None:
        self.taken: dict[str, list[Seconds]] = {"ours": [], "plain": []}
        self.whose = "ours"
        self.changed = Condition()

    def take(self, who: str) -> None:
        """Wait for one's turn, and start its clock."""
        with self.changed:
            self.changed.wait_for(lambda: self.whose == who)
        self.start = now()

    def end(self, who: str) -> None:
        self.taken[who].append(since(self.start))
        with self.changed:
            self.whose = "plain" if who == "ours" else "ours"
            self.changed.notify_all()


class Clocked(DatabaseRecorder):
    """Hands the turn on after every BLOCK steps."""

    turns: Turns

    def progress(self, step: int, loss: float, gradient_norm: Any = None) -> None:
        super().progress(step, loss, gradient_norm)
        if step % BLOCK == 0:
            self.turns.end("ours")
            if step < STEPS:
                self.turns.take("ours")


class Clock(lightning.Callback):
    """The same of plain Lightning."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def on_train_batch_end(self, trainer: lightning.Trainer, *rest: Any) -> None:
        if trainer.global_step % BLOCK == 0:
            self.turns.end("plain")
            if trainer.global_step < STEPS:
                self.turns.take("plain")


def _ours(folder: Path, plan: Any, spec: CellSpec, turns: Turns) -> None:
    turns.take("ours")
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there, open_database(folder / "runs.db", write=True, create=True) as database:
        recording.register(database, plan, {})
        (record,) = reading.load_sweep(database).runs
        attempt = claims.claim(database, record.id, "me", 3600.0)
        assert attempt is not None
        recorder = Clocked(recording.RunWriter(database, record.id, "me", attempt), record.id, here)
        recorder.turns = turns
        recorder.log = RunLog(STEPS, "loss", peak_memory)
        run.train(spec, record.seed, folder=folder / "files", recorder=recorder, stop=Stop())


def _plain(spec: CellSpec, turns: Turns) -> None:
    turns.take("plain")
    fix_arithmetic(spec.training)
    reseed(0, "weights")
    corpus = load_corpus(spec.task, spec.data)
    task: type[TaskModule] = TASKS[spec.task]
    batches = task.batches(spec, corpus, 0)
    module = task.of(spec, corpus)
    trainer = lightning.Trainer(
        max_epochs=1,
        max_steps=STEPS,
        accelerator="cpu",
        callbacks=[Clock(turns)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=os.devnull,
    )
    trainer.fit(module, training_batches(batches.train, spec.training, 0))

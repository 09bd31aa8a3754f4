"""What a resumable, recorded run costs of its training time: against Lightning with the same module and batches.

Ours reseeds before each batch, records to a database as a sweep's worker does, and takes checkpoints at its own pace;
plain Lightning does none of it. Both run the mini recipes on generated text, in turn, with one thread; a validation is
in neither. Read the ratio by processor time: what other programs take of the machine is not in it.
"""

import os
import socket
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import pytorch_lightning as lightning
import torch
from torch.utils.data import DataLoader

from kdx.grid.load import load_grid
from kdx.grid.spec import CellSpec
from kdx.store import reader, writer
from kdx.store.database import open_database
from kdx.sweep.worker import DatabaseRecorder
from kdx.training import run
from kdx.training.determinism import fix_arithmetic
from tests.benchmarks.throughput import Seconds, Stop, now, since

STEPS, WARM, ROUNDS = 140, 20, 3
MOST = 0.05

GRIDS = {
    "translation": "preset: translation-mini\ndata: {corpus: synthetic-translation, source: null, target: null}\n",
    "prediction": "preset: prediction-mini\ndata: {corpus: synthetic-language}\n",
}


def measure() -> dict[str, object]:
    """Share of training time that kdx adds, the median of the rounds."""
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
        rounds = []
        for number in range(ROUNDS):
            rounds.append((_ours(Path(folder) / str(number), plan, spec), _plain(spec)))
    return {
        "seconds": round(median(ours.elapsed for ours, _ in rounds), 2),
        "seconds of plain Lightning": round(median(plain.elapsed for _, plain in rounds), 2),
        "more": round(median(ours.elapsed / plain.elapsed for ours, plain in rounds) - 1, 3),
        "by processor time": round(median(ours.busy / plain.busy for ours, plain in rounds) - 1, 3),
    }


class Clocked(DatabaseRecorder):
    """Measures from step WARM to the last."""

    def progress(self, step: int, loss: float) -> None:
        super().progress(step, loss)
        if step == WARM:
            self.start = now()
        if step == STEPS:
            self.taken = since(self.start)


def _ours(folder: Path, plan: Any, spec: CellSpec) -> Seconds:
    folder.mkdir()
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there, open_database(folder / "runs.db", write=True, create=True) as database:
        writer.register(database, plan, {})
        (record,) = reader.load_sweep(database).runs
        attempt = writer.claim(database, record.id, "me", 3600.0)
        assert attempt is not None
        recorder = Clocked(writer.RunWriter(database, record.id, "me", attempt), record.id, here)
        run.train(spec, record.seed, folder=folder / "files", recorder=recorder, stop=Stop())
        return recorder.taken


class Clock(lightning.Callback):
    """The same of plain Lightning."""

    def on_train_batch_end(self, trainer: lightning.Trainer, *rest: Any) -> None:
        if trainer.global_step == WARM:
            self.start = now()
        if trainer.global_step == STEPS:
            self.taken = since(self.start)


def _plain(spec: CellSpec) -> Seconds:
    fix_arithmetic(spec.training.threads)
    module, batches, *_ = run._task(spec, 0, None)
    clock = Clock()
    trainer = lightning.Trainer(
        max_epochs=1,
        max_steps=STEPS,
        accelerator="cpu",
        callbacks=[clock],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=os.devnull,
    )
    trainer.fit(module, DataLoader(run._Batches(batches), batch_size=None, sampler=range(STEPS)))
    return clock.taken

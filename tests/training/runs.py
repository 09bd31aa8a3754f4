"""Runs of a dozen steps, and all they tell."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from kdx.grid.spec import CellSpec
from kdx.training import lifecycle
from kdx.training.checkpoint import CheckpointFiles
from kdx.training.recorder import Recorder
from kdx.training.resume import delete_resume_checkpoints
from kdx.training.run import RunOutcome, train
from kdx.training.stopping import Stopped, StopRequest

STEPS = 12
VALIDATE_EVERY = 5  # does not divide the steps
VALIDATIONS = [5, 10, 12]
TASKS = ("translation", "prediction")
CORPUS = {"translation": "synthetic-translation", "prediction": "synthetic-language"}


def cell(
    task: str,
    *,
    select: str | None = "loss",
    model: dict | None = None,
    evaluation: dict | None = None,
    axes: dict | None = None,
    **training,
) -> CellSpec:
    """A cell that learns enough within `STEPS`, with dropout."""
    fields = {
        "task": task,
        "position": "product",
        "data": {"corpus": CORPUS[task], "train_lines": 300},
        "evaluation": evaluation or {},
        "model": {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "inner": 16} | (model or {}),
        "training": {
            "steps": STEPS,
            "batch_tokens": 1024 if task == "translation" else 256,
            "warmup": 3,
            "learning_rate": 3e-2,
            "validate_every": VALIDATE_EVERY,
            "record_every": 1,
        }
        | ({"length": 16} if task == "prediction" else {})
        | training,
    }
    return CellSpec.model_validate(fields | (axes or {}) | ({"select": {"metric": select}} if select else {}))


class Kept(Recorder):
    """A recorder that keeps every call, in order, and calls `after` when a step is done."""

    def __init__(
        self, after: Callable[[int], None] = lambda step: None, prune_at: dict[int, str] | None = None
    ) -> None:
        self.after = after
        self.prune_at = prune_at or {}
        """Validation → why the run is pruned there."""
        self.events: list[tuple] = []

    def begin(self, environment, data_fingerprint, code_fingerprint, resumed_step, changes, data_facts):
        told = (environment, data_fingerprint, code_fingerprint, resumed_step, changes, data_facts)
        self.events.append(("begin", *told))

    def note(self, text):
        self.events.append(("note", text))

    def metric(self, name, step, value):
        self.events.append(("metric", name, step, value))

    def progress(self, step, loss, gradient_norm=None):
        self.events.append(("progress", step, loss))
        self.after(step)

    def alive(self):
        self.events.append(("alive", None))

    def flush(self, step):
        self.events.append(("flush", step))

    def why_pruned(self, step, metrics):
        self.events.append(("asked", step, dict(metrics)))
        return self.prune_at.get(step)

    def documents(self, sums):
        self.events.append(("documents", sums))

    def outputs(self, name, lines):
        self.events.append(("outputs", name, list(lines)))


@dataclass
class Run:
    """What a run gave, and where it left its files."""

    spec: CellSpec
    folder: Path
    events: list[tuple]
    outcome: RunOutcome | None
    """None for a run that was stopped."""

    @property
    def rows(self) -> dict[tuple[str, int], float]:
        """Metric and step → value."""
        return {(name, step): value for kind, name, step, value in self.of("metric")}

    def of(self, kind: str) -> list[tuple]:
        return [event for event in self.events if event[0] == kind]

    def column(self, name: str) -> dict[int, float]:
        """Step → value of one metric."""
        return {step: value for (metric, step), value in self.rows.items() if metric == name}

    @property
    def lines(self) -> list[str] | None:
        """The test translations."""
        return next((lines for _, _, lines in self.of("outputs")), None)

    def checkpoints(self, kind: str = "step") -> list[Path]:
        """The newest first."""
        return CheckpointFiles(self.folder).newest_first(kind)

    def left_at(self, step: int, folder: Path) -> None:
        """The folder as it was once the resume checkpoint of this step was written, with all weights up to then."""
        folder.mkdir(exist_ok=True)
        for path in self.checkpoints("weights"):
            if int(path.name[8:17]) <= step:
                shutil.copy(path, folder)
        (path,) = (path for path in self.checkpoints() if int(path.name[5:14]) == step)
        shutil.copy(path, folder)

    @property
    def weights(self) -> dict[str, Tensor]:
        """Those that were tested."""
        (path,) = self.checkpoints("best") + self.checkpoints("average")
        return torch.load(path, weights_only=True)


def run(
    spec: CellSpec, folder: Path, home: Path, seed: int = 0, stop_after: int | None = None, recorder=None, **how
) -> Run:
    """Train in this process; asked to stop once step `stop_after` is done."""
    stop = StopRequest()

    def ask(step: int) -> None:
        stop.asked = step == stop_after

    recorder = recorder or Kept(ask)
    try:
        outcome = train(spec, seed, folder=folder, recorder=recorder, stop=stop, home=home, **how)
        delete_resume_checkpoints(folder)  # as a sweep does, once it has recorded the outcome
    except Stopped:
        outcome = None
    return Run(spec, folder, recorder.events, outcome)


def save_every_step(patch, keep_all: bool = False) -> None:
    """Take a checkpoint at every safe point; `keep_all` also after the run, and all weights."""
    patch.setattr(lifecycle, "CHECKPOINT_EVERY", 0.0)
    patch.setattr(lifecycle, "CHECKPOINT_SHARE", float("inf"))
    if keep_all:
        patch.setattr(CheckpointFiles, "keep", lambda self, kind, kept=(): None)


def same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(one[name].view(torch.int32), other[name].view(torch.int32)) for name in one
    )


# The rate rises until it is far too high, so the best validation is the first.
WORSENS = {"learning_rate": 1.0, "warmup": 12}


def assert_same(one, other):
    """Rows bit for bit, best weights bit for bit, and all else."""
    assert one.rows == other.rows
    assert_same_end(one, other)


def assert_same_end(one, other):
    assert one.outcome == other.outcome
    assert same_bits(one.weights, other.weights)
    assert one.lines == other.lines


def rows_after(whole, step: int) -> dict:
    """Return the rows that a run resumed from `step` still records; test rows have the step of the weights tested.

    One that restarts records all, also what is known before the first step.
    """
    rows = whole.rows.items()
    return {(name, at): value for (name, at), value in rows if at > step or not step or name.startswith("test/")}

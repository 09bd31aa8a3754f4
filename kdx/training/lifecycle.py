"""The callback that makes a run resumable, and that of every test; it must be the first in Lightning's list.

Where a checkpoint is taken does not change a run's numbers, so time decides when; that it is taken at the start of a
batch that begins an optimiser step, with no gradients yet, is what lets the resumed run do exactly what the first would
have done.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytorch_lightning as lightning
from torch import Tensor

from kdx.checkpoint_names import CheckpointKind
from kdx.training.checkpoint import STATE_KEY, CheckpointFiles
from kdx.training.determinism import reseed
from kdx.training.divergence import Diverged
from kdx.training.longer import publish_shared
from kdx.training.module import TaskModule
from kdx.training.recorder import Recorder
from kdx.training.schedule import rate_factor
from kdx.training.stopping import Pruned, Stopped, StopRequest
from kdx.vocabulary import Direction

CHECKPOINT_EVERY = 30.0  # seconds, at least
CHECKPOINT_SHARE = 0.02  # of the training time, at most
CHECKPOINT_WITHIN = 1800.0  # seconds, whatever the last one cost
VALIDATION_GRACE = 30.0  # seconds that a validation has to come to its end once the run was asked to stop


class Best(NamedTuple):
    """The best validation so far."""

    step: int
    score: float


class DuringTest(lightning.Callback):
    """The callback of every test: that at the end of a run, and that of an evaluation later.

    It stops on request, gives signs of life, and draws each batch's randomness from a seed and its index.
    """

    def __init__(self, seed: int, stop: StopRequest, alive: Callable[[], None]) -> None:
        """Takes the run's seed of dropout, and the function to call before each batch."""
        self.seed, self.stop, self.alive = seed, stop, alive

    def on_test_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        # Lightning treats a test as a run of its own, and answers its SIGTERM with a SystemExit.
        self.stop.listen()

    def on_test_batch_start(
        self,
        trainer: lightning.Trainer,
        module: lightning.LightningModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if self.stop.asked:
            raise Stopped
        self.alive()
        reseed(self.seed, "test", batch_idx)


class Lifecycle(DuringTest):
    """Reseeds, records, keeps the weights of the validations that count, checkpoints, stops on request, and prunes.

    Weights lie in files of their own, beside the resume checkpoints, which list them by name and so by hash.
    """

    def __init__(
        self,
        files: CheckpointFiles,
        recorder: Recorder,
        seed: int,
        stop: StopRequest,
        origin: Mapping[str, Any],
        shared_step: int = 0,
    ) -> None:
        super().__init__(seed, stop, recorder.alive)
        self.files = files
        self.shared_step = shared_step
        """The step at which to keep what a run of more steps needs; 0: nowhere."""
        self.origin = dict(origin)
        """The run and its conditions; saved in the checkpoints."""
        self.recorder = recorder
        self.best: Best | None = None
        """Saved in the checkpoints with `weights`, so that a run never resumes with the best of another moment."""
        self.weights: list[str] = []
        """Names of the files to be tested: the best validation's weights, or those of the last ones, oldest first."""
        self.listed: list[str] = []
        """The weights that the newest resume checkpoint lists."""
        self.averaged = False
        """Whether the weights are the mean over the last validations by now."""
        self.valid: dict[str, float] = {}
        """Metrics of the last validation, not of the mean's; every resumed run has one before its end."""
        self.stop_seen: float | None = None
        """When a validation first saw that the run was asked to stop, by the monotonic clock."""
        self.loss = 0.0
        """The loss of the optimiser step under way: what its batches have added so far to their mean."""
        self.first_loss: float | None = None
        """Training loss of the first step; saved in the checkpoints."""
        self.pruned: str | None = None
        """Why the run is to end as pruned; saved in the checkpoints."""
        self.saved_step = -1
        self.saved_at = time.monotonic()
        self.save_cost = 0.0

    @property
    def state_key(self) -> str:
        """Fixed: the default is the class name, and a renamed class would silently lose its state."""
        return STATE_KEY

    def state_dict(self) -> dict[str, Any]:
        return {
            "best": self.best and self.best._asdict(),
            "weights": self.weights,
            "origin": self.origin,
            "first_loss": self.first_loss,
            "pruned": self.pruned,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best = state_dict["best"] and Best(**state_dict["best"])
        self.weights = self.listed = list(state_dict["weights"])
        self.first_loss = state_dict["first_loss"]
        self.pruned = state_dict["pruned"]

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        self.stop.listen()
        self.saved_step = trainer.global_step

    def on_train_batch_start(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        assert isinstance(module, TaskModule)
        # Between two batches of one step there are gradients, which no checkpoint holds.
        if batch_idx % module.spec.training.accumulate == 0:
            if trainer.global_step != self.saved_step and (self.stop.asked or self._due()):
                self._save(trainer)
            if trainer.global_step == self.shared_step > 0:
                self._save(trainer)
                publish_shared(self.files, self.files.newest_first(CheckpointKind.STEP)[0])
            if self.stop.asked:
                self.recorder.flush(trainer.global_step)
                raise Stopped
        reseed(self.seed, "train", batch_idx)

    def _due(self) -> bool:
        since = time.monotonic() - self.saved_at
        cheap = self.save_cost < CHECKPOINT_SHARE * since
        return since >= CHECKPOINT_EVERY and (cheap or since >= CHECKPOINT_WITHIN)

    def _save(self, trainer: lightning.Trainer) -> None:
        # A checkpoint must never be ahead of the rows before it.
        self.recorder.flush(trainer.global_step)
        # Measured from here: waiting for a locked database is no cost of the checkpoint.
        start = time.monotonic()
        trainer.save_checkpoint(self.files.folder)
        # Two resume checkpoints are left: this one and the one before.
        self.files.keep(CheckpointKind.WEIGHTS, {*self.listed, *self.weights})
        self.listed = self.weights
        self.saved_step, self.saved_at = trainer.global_step, time.monotonic()
        self.save_cost = self.saved_at - start
        self.recorder.checkpointed(trainer.global_step)

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        module: lightning.LightningModule,
        outputs: Tensor | Mapping[str, Any] | None,
        batch: Any,
        batch_idx: int,
    ) -> None:
        assert isinstance(module, TaskModule) and isinstance(outputs, Mapping)
        training = module.spec.training
        self.loss += float(outputs["loss"])  # which Lightning has divided by `accumulate`
        if (batch_idx + 1) % training.accumulate:
            return
        step, loss, self.loss = trainer.global_step, self.loss, 0.0
        if step == 1:
            self.first_loss = loss
        if step % training.record_every == 0 or step == 1:
            self.recorder.metric("train/loss", step, loss)
            # The optimiser's own rate is already that of the next step.
            self.recorder.metric("train/learning_rate", step, training.learning_rate * rate_factor(training, step - 1))
        self.recorder.progress(step, loss, module.gradient_norm)

    def on_exception(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, exception: BaseException
    ) -> None:
        if isinstance(exception, Diverged) and exception.training_loss is not None:
            # The curve shows its end: the loss of the step that was not taken.
            self.recorder.metric("train/loss", trainer.global_step + 1, exception.training_loss)

    def on_validation_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        # Lightning treats the last validation as a run of its own, and answers its SIGTERM with a SystemExit.
        self.stop.listen()

    def on_validation_batch_start(
        self,
        trainer: lightning.Trainer,
        module: lightning.LightningModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self.recorder.alive()
        if self.stop.asked:
            self.stop_seen = self.stop_seen or time.monotonic()
            if time.monotonic() - self.stop_seen > VALIDATION_GRACE:
                # The last checkpoint remains valid.
                self.recorder.flush(trainer.global_step)
                raise Stopped
        reseed(self.seed, "valid", trainer.global_step, batch_idx)

    def on_validation_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TaskModule)
        step, metrics = trainer.global_step, module.results
        for name, value in metrics.items():
            self.recorder.metric(f"valid/average/{name}" if self.averaged else f"valid/{name}", step, value)
        self.recorder.flush_if_due(step)
        if not math.isfinite(metrics["loss"]):
            raise Diverged(f"validation loss is {metrics['loss']} at step {step}")
        metric, direction = module.spec.selection
        latest = Best(step, metrics[metric.removeprefix("valid/")])
        if self.averaged:
            self.best = latest
            return
        self.valid = dict(metrics)
        better = self.best is None or _better(latest.score, self.best.score, direction)
        if better:
            self.best = latest
        average = module.spec.training.average
        if average or better:
            path = self.files.write(CheckpointKind.WEIGHTS, step, module.model.state_dict())
            self.weights = [*self.weights, path.name][-(average or 1) :]
        # A run that has done all its steps cannot be pruned.
        if step < module.spec.training.steps:
            self.pruned = self.recorder.why_pruned(step, metrics)
            if self.pruned is not None:
                # Saved first, since the recorder might answer differently the next time.
                self._save(trainer)
                raise Pruned


def _better(score: float, best: float, direction: Direction) -> bool:
    return score > best if direction is Direction.MAX else score < best

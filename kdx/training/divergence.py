"""Decides that a run has diverged: its loss or gradient is not finite, or its final loss is far above its first.

A loss or gradient that is not finite may be caused by the run itself, by a number format, or by a GPU kernel. So the
batch is computed once more, in float32 and with torch's plain formula of attention, from the same weights and random
numbers. If the result is finite, the run fails; if not, it has diverged.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from kdx.errors import KdxError
from kdx.grid.sections import Training
from kdx.training.determinism import reseed
from kdx.training.module import TaskModule
from kdx.vocabulary import Arithmetic, Precision

WORSE = 1.25
"""A run has diverged if its final loss is above this many times the first step's training loss. That loss is of one
batch, so a model that does not move may end at 1.15 times it (the worst of six seeds, in batches of 8 examples)."""


class Diverged(Exception):
    """The loss or its gradient is no longer a finite number: an outcome of the run, not an error."""

    def __init__(self, problem: str, training_loss: float | None = None) -> None:
        super().__init__(problem)
        self.training_loss = training_loss
        """The loss of the batch; None if a validation diverged, whose rows have the loss."""


class ArithmeticFault(KdxError):
    """A number is not finite, but is finite in float32: a failure of the run, not an outcome."""


class Finite(lightning.Callback):
    """Ends a run at the first loss or gradient that is not finite; comes after the lifecycle in Lightning's list.

    Gradients are checked in half precision and on GPUs. In float32 on a CPU a bad gradient shows in the next loss.
    """

    def __init__(self, seed: int) -> None:
        """Takes the run's seed of dropout."""
        self.seed = seed
        self._batch: tuple[Any, int] | None = None
        """The current training batch, with its index in the run."""
        self._loss = 0.0
        self._put_back: Callable[[], None] = lambda: None
        """Undoes what the batch did to the module's memory."""
        self._was_finite = True

    def on_train_batch_start(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        assert isinstance(module, TaskModule)
        self._batch, self._put_back = (batch, batch_idx), module.snapshot()

    def on_before_backward(self, trainer: lightning.Trainer, module: lightning.LightningModule, loss: Tensor) -> None:
        assert isinstance(module, TaskModule)
        self._loss = loss.item() * module.spec.training.accumulate  # by which Lightning has divided it
        if not math.isfinite(self._loss):
            self._end(trainer, module, "training loss", self._loss)

    def on_after_backward(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TaskModule)
        if module.spec.training.precision is Precision.FP32 and module.device.type == "cpu":
            return
        # Degree 2 takes a tenth of the time, but squares may overflow.
        if not math.isfinite(_gradient(module, 2.0)) and not math.isfinite(largest := _gradient(module, torch.inf)):
            self._end(trainer, module, "gradient of the training loss", largest)

    def on_validation_batch_start(
        self,
        trainer: lightning.Trainer,
        module: lightning.LightningModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        assert isinstance(module, TaskModule)
        self._was_finite, self._put_back = math.isfinite(module.nats_so_far), module.snapshot()

    def on_validation_batch_end(
        self,
        trainer: lightning.Trainer,
        module: lightning.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        assert isinstance(module, TaskModule)
        if math.isfinite(module.nats_so_far) or not self._was_finite:
            return
        self._put_back()
        reseed(self.seed, "valid", trainer.global_step, batch_idx)
        with _plain_float32(module):
            again = module.loss(batch)
        # Otherwise the lifecycle ends the run as diverged once the whole validation is recorded.
        if torch.isfinite(again):
            raise _fault("validation loss", module.nats_so_far, trainer.global_step, module.spec.training)

    def _end(self, trainer: lightning.Trainer, module: TaskModule, what: str, value: float) -> NoReturn:
        assert self._batch is not None
        batch, index = self._batch
        module.zero_grad()
        self._put_back()
        reseed(self.seed, "train", index)
        with _plain_float32(module):
            loss = module.loss(batch)
            torch.autograd.backward(loss)
        if torch.isfinite(loss) and math.isfinite(_gradient(module, torch.inf)):
            raise _fault(what, value, trainer.global_step, module.spec.training)
        raise Diverged(f"{what} is {value} at step {trainer.global_step}", self._loss)


def ended_worse(final: float, first: float | None) -> str | None:
    """Return why a run that made all its steps has diverged, in one line; None if it has not.

    Args:
        final: loss of the last validation.
        first: training loss of the first step; None if unknown.
    """
    if first is None or final <= WORSE * first:
        return None
    return f"final validation loss {final:.3f} is above {WORSE} × {first:.3f}, the first step's training loss"


@contextmanager
def _plain_float32(module: TaskModule) -> Iterator[None]:
    with torch.autocast(module.device.type, enabled=False), sdpa_kernel(SDPBackend.MATH):
        yield


def _gradient(module: TaskModule, norm: float) -> float:
    """Return the norm of all gradients together: of degree 2, or their largest absolute value (∞)."""
    gradients = [weight.grad for weight in module.parameters() if weight.grad is not None]
    return torch.nn.utils.get_total_norm(gradients, norm).item()


def _fault(what: str, value: float, step: int, training: Training) -> ArithmeticFault:
    precise = "training.precision to fp32" if training.precision is not Precision.FP32 else None
    exact = "training.arithmetic to exact" if training.arithmetic is Arithmetic.FAST else None
    settings = " or ".join(filter(None, (precise, exact)))
    remedy = f"set {settings}" if settings else "try another device, or another version of torch"
    # The remedy is in the message, since only the message is recorded with a failure.
    return ArithmeticFault(
        f"{what} is {value} in {training.precision} at step {step}, and finite in float32 with plain attention: "
        f"a fault of arithmetic and no divergence; {remedy}"
    )

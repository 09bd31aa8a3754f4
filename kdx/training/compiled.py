"""torch.compile, which fast arithmetic takes on a GPU for the loss of training and its gradient.

On a CPU it does not pay (docs/understand/arithmetic.md). Evaluations are not compiled: each kind of them would be for
itself, and a run evaluates far less than it trains.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kdx.errors import KdxError
from kdx.grid.sections import Training
from kdx.vocabulary import Arithmetic

DEVICE = "cuda"

compiled: Callable[[Callable[[Any], Tensor]], Callable[[Any], Tensor]] = partial(
    torch.compile,
    # Dropout draws from torch's own generator. So its numbers are those of the loss as it is written, with which
    # `kdx.training.finite` computes a step again.
    options={"fallback_random": True},
)
"""A loss, compiled for the shapes of its first batch, and once for all others where they differ in later batches.

Where that is not enough, torch compiles some variants more and computes further ones as they are written.
"""


def compiles(training: Training, device: torch.device) -> bool:
    """Whether the loss of such a training is compiled on such a device."""
    return training.arithmetic is Arithmetic.FAST and device.type == DEVICE


@contextmanager
def compiler_failures() -> Iterator[None]:
    """What cannot be compiled in the block, forward or backward, ends the run with one message.

    The run does not go on uncompiled: nobody would see why it is slow, and its times would be taken for those of fast
    arithmetic.

    Raises:
        KdxError: the compiler failed, and neither a disk nor memory is at fault.
    """
    from torch._dynamo.exc import TorchDynamoException  # 0.2 s, only where something is compiled

    try:
        yield
    except TorchDynamoException as error:
        cause = getattr(error, "inner_exception", error)
        if isinstance(cause, (OSError, torch.OutOfMemoryError)):
            raise cause from error
        reason = f"{type(cause).__name__}: {cause}".partition("\n")[0]
        # In the one line that is recorded of a failure.
        raise KdxError(
            f"torch.compile failed, which needs Triton and a C compiler such as gcc ({reason}); if both are there, set "
            "training.arithmetic to exact"
        ) from error

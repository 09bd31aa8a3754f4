"""The learning rate as a function of the step, so that resuming needs no scheduler state."""

import math

from kdx.grid.sections import Training
from kdx.vocabulary import Schedule


def rate_factor(training: Training, step: int) -> float:
    """Return the factor on the peak rate at an optimiser step counted from 0: linear warm-up, then the schedule.

    inverse-sqrt: √(warmup / step) (Vaswani et al. 2017, Eq. 3); cosine: half a period from 1 to the final rate over
    the rest of the run (Loshchilov & Hutter 2017, without restarts); warmup-stable-decay: 1, then a line to the
    final rate over the last `decay` steps (Hu et al. 2024; a line, not an exponential, as in Hägele et al. 2024).
    """
    step += 1  # the first update already has a rate
    warmup = training.warmup
    if step < warmup:
        return step / warmup
    if training.schedule is Schedule.INVERSE_SQRT:
        return math.sqrt(max(warmup, 1) / step)
    if training.schedule is Schedule.CONSTANT:
        return 1.0
    if training.schedule is Schedule.COSINE:
        left = max(training.steps - warmup, 1)
        share = 0.5 * (1 + math.cos(math.pi * min((step - warmup) / left, 1.0)))
    else:
        assert training.decay is not None
        share = min(max((training.steps - step) / training.decay, 0.0), 1.0)
    return training.final_rate + (1 - training.final_rate) * share

"""Writes a run's progress to its log: a line now and then, and one for each validation and for the test."""

import contextlib
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import SupportsFloat

from kdx.sweep.forecast import in_words

EVERY = 30.0
"""Seconds between two lines."""


class RunLog:
    """Writes the lines of one attempt to stderr, which is the run's log.

    A line has the step, its loss, the steps per second of this attempt (validations included), the time left at this
    rate, the memory, and the norm of the gradient before clipping. The norm is shown only if the cell clips, since
    nothing else computes it.
    """

    def __init__(self, steps: int, metric: str, memory: Callable[[], int]) -> None:
        """Start an empty log.

        Args:
            steps: number of steps of the run.
            metric: name of the metric that selects, without its split; it is shown next to the loss.
            memory: returns the most bytes that the process has used.
        """
        self._steps = steps
        self._shown = tuple(
            f"{split}/{name}" for split in ("valid", "valid/average", "test") for name in (metric, "loss")
        )
        self._memory = memory
        self._first: tuple[int, float] | None = None
        self._last: tuple[int, float, SupportsFloat | None] | None = None
        self._written = 0.0
        self._measured: dict[str, float] = {}

    def progress(self, step: int, loss: float, gradient_norm: SupportsFloat | None) -> None:
        """Note a step, and write a line if the last line is more than `EVERY` seconds old."""
        now = time.monotonic()
        self._last = step, loss, gradient_norm
        if self._first is None:
            self._first = step, now
        elif now - self._written < EVERY:
            return
        self._line(self._training())

    def measured(self, name: str, value: float) -> None:
        """Note a recorded number; numbers of a validation and of the test are shown."""
        if name in self._shown:
            self._measured[name] = value

    def recorded(self, step: int) -> None:
        """Note that all numbers are durable, and write a line if some are from a validation or the test."""
        if self._measured:
            scores = ", ".join(f"{name} {value:.4g}" for name, value in self._measured.items())
            # A test has the step of its weights, which may be long before the last step.
            tested = any(name.startswith("test/") for name in self._measured)
            now = self._step(step) if tested or self._last is None else self._training()
            self._measured.clear()
            self._line(f"{now}: {scores}")

    def _step(self, step: int) -> str:
        return f"step {step:,} of {self._steps:,}"

    def _training(self) -> str:
        assert self._first is not None and self._last is not None
        (first, began), (step, loss, gradient_norm) = self._first, self._last
        parts = [self._step(step), f"loss {loss:.4g}"]
        elapsed = time.monotonic() - began
        if step > first and elapsed > 0:
            rate = (step - first) / elapsed
            parts.append(f"{rate:.3g} steps/s")
            if step < self._steps:
                parts.append(f"about {in_words((self._steps - step) / rate)} left")
        parts.append(f"{self._memory() / 1e9:.2f} GB at most")
        if gradient_norm is not None:
            parts.append(f"gradient norm {float(gradient_norm):.3g}")
        return ", ".join(parts)

    def _line(self, text: str) -> None:
        self._written = time.monotonic()
        at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        # A full disk must not end the run here: the database reports it at the next checkpoint.
        with contextlib.suppress(OSError):
            print(f"{at} {text}", file=sys.stderr, flush=True)

"""Records what a run's training reports: rows in the database, progress to the sweep, and lines in the run's log."""

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsFloat

from kdx.metrics.decimals import rounded
from kdx.store.recording import RunWriter
from kdx.sweep.forecast import in_words
from kdx.sweep.messages import SignsOfLife
from kdx.sweep.pace import Pace
from kdx.training.recorder import Recorder
from kdx.training.sums import DocumentSums

if TYPE_CHECKING:
    from kdx.tune.pruning import Judge

FLUSH_EVERY = 1.0
"""Seconds between two writes of numbers, at least; see `kdx.sweep.pace.Pace`."""
FLUSH_AT_LATEST = 30.0
"""Seconds between two writes of numbers, at most."""
LINE_EVERY = 30.0
"""Seconds between two lines in the log, at least."""


class DatabaseRecorder(Recorder):
    """A recorder that writes to the database now and then, and sends progress to the sweep at once.

    It writes every second, and more rarely where writing takes long: all that came since then in one transaction. So a
    short run has one, at its end.
    """

    def __init__(
        self, writer: RunWriter, run_id: int, channel: socket.socket, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.writer = writer
        self.log: RunLog | None = None
        """Writes lines on the progress to the run's log; None before there is that log."""
        self.judge: tuple[Judge, str] | None = None
        """Judge of a trial that may end early, and the metric that it judges by."""
        self._signs = SignsOfLife(channel, run_id, clock)
        self.step = 0
        self._rows: list[tuple[str, int, float]] = []
        self._writes: list[Callable[[], None]] = []
        """What else came since the last transaction, as calls of the writer."""
        self._pace = Pace(FLUSH_EVERY, FLUSH_AT_LATEST, clock)

    def begin(
        self,
        environment: Mapping[str, Any],
        data_fingerprint: str,
        code_fingerprint: str,
        resumed_step: int,
        changes: str | None,
        data_facts: Mapping[str, Any],
    ) -> None:
        given = environment, data_fingerprint, code_fingerprint, resumed_step, changes, data_facts
        self._writes.append(partial(self.writer.begin, *given))
        self.begins("first step")

    def begins(self, what: str) -> None:
        """Report what the run begins with before its first step."""
        self._signs.begins(what)

    def take_over(self, run_id: int, step: int) -> None:
        self.writer.take_over(run_id, step)

    def note(self, text: str) -> None:
        self._signs.note(text)

    def metric(self, name: str, step: int, value: float) -> None:
        self._rows.append((name, step, value))
        if self.log:
            self.log.measured(name, value)

    def progress(self, step: int, loss: float, gradient_norm: SupportsFloat | None = None) -> None:
        self.step = step
        self.flush_if_due(step)
        self._signs.say({"event": "progress", "step": step, "loss": loss})
        if self.log:
            self.log.progress(step, loss, gradient_norm)

    def alive(self) -> None:
        self._signs.alive()

    def checkpointed(self, step: int) -> None:
        self.writer.checkpoint(step)

    def flush(self, step: int) -> None:
        self.write(step)

    def flush_if_due(self, step: int) -> None:
        if self._pace.due:
            self.flush(step)
        elif self.log:
            self.log.recorded(step)

    def write(self, step: int, *more: Callable[[], None]) -> None:
        """Write what came since the last transaction, and more, as calls of the writer."""
        self.step = max(self.step, step)
        with self._pace.keep():
            self.writer.together([*self._writes, partial(self.writer.record, self._rows, self.step), *more])
        self._writes.clear()
        self._rows.clear()
        if self.log:
            self.log.recorded(step)

    def why_pruned(self, step: int, metrics: Mapping[str, float]) -> str | None:
        if self.judge is None:
            return None
        judge, metric = self.judge
        return judge.why_pruned(step, metrics[metric])

    def documents(self, sums: DocumentSums) -> None:
        self._writes.append(partial(self.writer.documents, sums.unit, sums.sums))

    def outputs(self, name: str, lines: Sequence[str]) -> None:
        self._writes.append(partial(self.writer.outputs, name, lines))


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
        """Note a step, and write a line if the last line is more than `LINE_EVERY` seconds old."""
        now = time.monotonic()
        self._last = step, loss, gradient_norm
        if self._first is None:
            self._first = step, now
        elif now - self._written < LINE_EVERY:
            return
        self._line(self._training())

    def measured(self, name: str, value: float) -> None:
        """Note a recorded number; numbers of a validation and of the test are shown."""
        if name in self._shown:
            self._measured[name] = value

    def recorded(self, step: int) -> None:
        """Write a line if numbers of a validation or of the test came since the last one."""
        if self._measured:
            scores = ", ".join(f"{name} {rounded(value, name)}" for name, value in self._measured.items())
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
        parts = [self._step(step), f"loss {rounded(loss, 'loss')}"]
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

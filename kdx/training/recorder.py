"""What training reports: a sweep passes in a recorder, which keeps the results and may prune the run."""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

from kdx.training.sums import DocumentSums


class Recorder:
    """Keeps the results of a run; this one keeps none.

    A row is durable after `flush`, and every checkpoint comes after a flush.
    """

    def begin(
        self,
        environment: Mapping[str, Any],
        data_fingerprint: str,
        code_fingerprint: str,
        resumed_step: int,
        changes: str | None,
        data_facts: Mapping[str, Any],
    ) -> None:
        """Before the first step of an attempt, which resumes from `resumed_step`.

        Args:
            data_facts: what it is evaluated on, see `kdx.data.reading.data_facts`.
            changes: what differs from the conditions of the attempt before; None: nothing.
        """

    def take_over(self, run_id: int, step: int) -> None:
        """The rows of another run up to a step become this one's, durable at once, in place of any that it has."""

    def note(self, text: str) -> None:
        """A remark on the attempt for the user, in one line without a subject: `resumes from step …`."""

    def metric(self, name: str, step: int, value: float) -> None:
        """One row: `train/loss`, `valid/bleu`, …, at an optimiser step."""

    def progress(self, step: int, loss: float, gradient_norm: SupportsFloat | None = None) -> None:
        """Called after every step, for a progress display and a log; may be dropped.

        Args:
            gradient_norm: norm of the step's gradient before it was clipped, which may lie on a GPU, so that reading it
                waits for the GPU; None: the cell clips none, so nothing computed it.
        """

    def alive(self) -> None:
        """Called now and then during long work between two steps, such as a validation; may be dropped."""

    def checkpointed(self, step: int) -> None:
        """The run can resume from `step` from now on."""

    def flush(self, step: int) -> None:
        """Make all rows so far durable."""

    def flush_if_due(self, step: int) -> None:
        """Make all rows so far durable, unless that was done a moment ago."""

    def why_pruned(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Why the run is to stop here as pruned, in one line; None: it continues.

        Training asks on the main thread after each validation but the last, once its weights are kept. It saves a
        reason in a checkpoint before it stops, so that a run which is killed in between also ends pruned and does not
        ask again.

        Args:
            metrics: metrics of that validation, by name without split.
        """
        return None

    def documents(self, sums: DocumentSums) -> None:
        """What the test measured by document."""

    def outputs(self, name: str, lines: Sequence[str]) -> None:
        """A text that the run produced, such as `test/translations`, with one sentence a line."""

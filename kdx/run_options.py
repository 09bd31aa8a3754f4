"""The options of a run apart from its cell and seed."""

from dataclasses import dataclass

from kdx.vocabulary import IfChanged


@dataclass(frozen=True)
class RunOptions:
    """Every option of a run apart from its cell and seed, from the command line to the worker.

    They are not part of a run's identity. Processes exchange them as JSON, see `kdx.sweep.messages.Work`.

    Raises:
        ValueError: an option has a value that it cannot have.
    """

    if_changed: IfChanged = IfChanged.REFUSE
    """What to do with a run that was started under other conditions."""
    hang_after: float = 600.0
    """Seconds without a sign of life after which a run counts as hung; then it is ended and tried again."""
    keep_state: bool = False
    """Whether a finished run keeps what a run of more steps can continue from."""

    def __post_init__(self) -> None:
        if not self.hang_after > 0:
            raise ValueError(f"a run cannot hang after {self.hang_after} s")

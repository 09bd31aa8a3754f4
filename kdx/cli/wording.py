"""How messages name runs, cells, states and processes, and how they write counts, sizes and scores."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING

from kdx.metrics.decimals import rounded
from kdx.report.wording import word_of
from kdx.sanitize import sanitize
from kdx.store.machine import machine
from kdx.store.remarks import NoteRecord

if TYPE_CHECKING:
    from kdx.grid.plan import PlannedCell, PlannedRun

NOT_NEEDED = "not needed"
"""Counted in place of the state of a run that the rule of the sweep's seeds will not need."""
PAUSED = "paused"
"""Counted in place of the state of a run that is not started because others of its cell failed alike."""


def count_of(number: int, what: str) -> str:
    """Return a count such as `1 run` or `1,200 runs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def test_metric(selection_metric: str) -> str:
    """Return the metric of the test that is reported beside a selection metric."""
    return selection_metric.replace("valid/", "test/", 1)


def counts_of(counts: Mapping[str, int]) -> str:
    """Return counts such as `1,200 completed, 3 failed`."""
    return ", ".join(f"{count:,} {state}" for state, count in counts.items())


def numbers_of(what: str, numbers: Sequence[int], most: int = 10) -> str:
    """Return things by their numbers, such as `run 7` or `runs 7, 8`."""
    listed = [*map(str, numbers[:most]), *(["…"] if len(numbers) > most else [])]
    return f"{what}{'' if len(numbers) == 1 else 's'} {', '.join(listed)}"


def size(count: int) -> str:
    """Return a number of bytes in a suitable unit."""
    number, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:.0f} {units[0]}" if units[0] == "bytes" else f"{number:.1f} {units[0]}"


def shown_score(value: float | None, metric: str) -> Decimal | float | None:
    """Return a score with the decimals that tables give its metric, as a number, which a column aligns to the right."""
    return value if value is None or not isfinite(value) else Decimal(rounded(value, metric))


def time_in_words(seconds: float) -> str:
    """Return a time, in seconds since 1970, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def notes_in_words(notes: Sequence[NoteRecord]) -> str:
    """Return notes on one line, each with its time."""
    return "; ".join(f"{' '.join(note.text.split())} ({time_in_words(note.made)} UTC)" for note in notes)


def choices_of(labels: Mapping[str, str], task: str = "the cell") -> str:
    """Return the choice of a cell on each axis; `task` if there are no axes."""
    return " · ".join(word_of(axis, word) for axis, word in labels.items()) or task


def cell_name(cell: "PlannedCell") -> str:
    """Return the name of a cell in one line: the first digits of its id, and the choice on each axis."""
    return sanitize(f"{cell.id[:8]} {choices_of(cell.labels, cell.spec.task)}")


def run_name(run: "PlannedRun") -> str:
    """Return the name of a run in one line: that of its cell, and the seed."""
    return f"{cell_name(run.cell)} · seed {run.seed}"


def process_of(owner: str | None) -> tuple[str, int] | None:
    """Return the hashed machine and the number of the process that claimed a run; None if unknown.

    Args:
        owner: see `kdx.sweep.lease_holder`.
    """
    parts = (owner or "").split("/")
    known = len(parts) == 6 and parts[3].isascii() and parts[3].isdigit()
    return (parts[0], int(parts[3])) if known else None


def process_in_words(owner: str | None) -> str | None:
    """Return such a process in words, such as `process 7 here`; None if unknown."""
    process = process_of(owner)
    if process is None:
        return None
    return f"process {process[1]} {'here' if process[0] == machine() else f'on machine {process[0][:8]}'}"

"""What `kdx status` shows of sweeps and of runs in the same way: workers, searches, notes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.cli.wording import process_in_words, process_of, time_in_words
from kdx.report.writers.rows import to_text
from kdx.store.records import SearchRecord
from kdx.store.remarks import NoteRecord
from kdx.store.status import WorkRecord
from kdx.sweep.lease_holder import Liveness, liveness


@dataclass(frozen=True)
class Worker:
    """A process that claimed a run."""

    run: int
    step: int
    seconds: float
    """Since the claim."""
    lease_left: float | None
    device: str | None
    gpu: str | None
    machine: str | None
    """Its hash."""
    process: int | None
    alive: bool
    """Whether it may still work: it was not found dead."""
    place: str
    """In words, such as `process 7 here`."""


def worker_of(work: WorkRecord) -> Worker:
    """Return who works at a run."""
    machine, process = process_of(work.owner) or (None, None)
    alive = work.owner is not None and liveness(work.owner) is not Liveness.GONE
    lapsed = work.lease_left is not None and work.lease_left < 0
    state = ", which is gone" if not alive else ", whose lease has lapsed" if lapsed else ""
    on = "" if work.gpu is None else f", on GPU {work.gpu} ({work.device})"
    place = process_in_words(work.owner)
    place = f"{place}{state}{on}" if place else "a process of another kdx"
    return Worker(
        work.run_id, work.step, work.running, work.lease_left, work.device, work.gpu, machine, process, alive, place
    )


@dataclass(frozen=True)
class Search:
    """How far a search is."""

    choices: dict[str, str]
    trials: int
    ended: dict[str, int]
    """How its trials ended → how many did."""
    runs_of_a_trial: int
    left: int
    """Trials that have not ended."""


def search_of(record: SearchRecord) -> Search:
    ended = {state.value: count for state, count in record.ended.items()}
    return Search(dict(record.labels), record.wanted, ended, record.seeds, record.left)


def trials_in_words(searches: Sequence[Search]) -> str:
    """Return how many trials of them all have ended."""
    trials = sum(search.trials for search in searches)
    return f"{trials - sum(search.left for search in searches):,} of {trials:,} trials"


def note_lines(notes: Sequence[tuple[str, Sequence[NoteRecord]]]) -> Iterator[str]:
    """Return a table of notes, each with what it is on."""
    rows = [(what, time_in_words(note.made)[:-3], " ".join(note.text.split())) for what, each in notes for note in each]
    if rows:
        yield ""
        yield from to_text(("on", "written (UTC)", "note"), rows)


def without_blanks(
    columns: Sequence[str], lines: list[tuple[Any, ...]], column: str
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return header and lines, less this column where it is blank in all of them."""
    at = columns.index(column)
    if any(line[at] for line in lines):
        return tuple(columns), lines
    return (*columns[:at], *columns[at + 1 :]), [(*line[:at], *line[at + 1 :]) for line in lines]

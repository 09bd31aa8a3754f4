"""What `kdx status` says of sweeps and of runs in the same words: states, processes, trials and notes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kdx.cli.console import out, out_lines
from kdx.cli.processes import process_in_words, process_of
from kdx.report.writers.rows import to_text
from kdx.sanitize import sanitize
from kdx.store.remarks import NoteRecord
from kdx.store.search_progress import SearchProgress
from kdx.store.status import WorkRecord
from kdx.sweep.lease_holder import Liveness, liveness


def states_in_words(counts: Any, *, at_most: bool) -> str:
    """How many runs are in each state; where a rule decides how many are needed, pending ones are the most."""
    most = {"pending": "at most "} if at_most else {}
    return ", ".join(f"{most.get(state, '')}{count:,} {state}" for state, count in counts.items()) or "no runs"


def worker_to_json(one: WorkRecord) -> dict[str, Any]:
    return {
        "run": one.run_id,
        "step": one.step,
        "seconds": one.running,
        "lease_left": one.lease_left,
        "device": one.device,
        "gpu": one.gpu,
        **process_of(one.owner),
    }


def is_alive(one: WorkRecord) -> bool:
    """Whether its process may still work: it was not found dead."""
    return one.owner is not None and liveness(one.owner) is not Liveness.GONE


def where_it_works(one: WorkRecord) -> str:
    process = process_in_words(one.owner)
    if process is None:
        return "a process of another kdx"
    lapsed = one.lease_left is not None and one.lease_left < 0
    state = ", which is gone" if not is_alive(one) else ", whose lease has lapsed" if lapsed else ""
    on = "" if one.gpu is None else f", on GPU {one.gpu} ({one.device})"
    return f"{process}{state}{on}"


def search_to_json(one: SearchProgress) -> dict[str, Any]:
    return {
        "choices": dict(one.labels),
        "trials": one.trials,
        "ended": {state.value: count for state, count in one.ended.items()},
        "runs_of_a_trial": one.seeds,
    }


def trials_in_words(searches: Sequence[SearchProgress]) -> str:
    """How many trials of them all have ended."""
    asked = sum(one.trials for one in searches)
    return f"{asked - sum(one.left for one in searches):,} of {asked:,} trials"


def notes_to_json(written: Sequence[NoteRecord]) -> list[dict[str, Any]]:
    return [{"made": one.made, "text": one.text} for one in written]


def write_notes(notes: Sequence[tuple[str, list[dict[str, Any]]]], tags: Sequence[str] = ()) -> None:
    rows = [
        (on, datetime.fromtimestamp(one["made"], UTC).strftime("%Y-%m-%d %H:%M"), " ".join(one["text"].split()))
        for on, its in notes
        for one in its
    ]
    if rows:
        out("")
        out_lines(to_text(("on", "written (UTC)", "note"), rows))
    if tags:
        out("")
        out_lines([f"tags: {sanitize(' '.join(tags))}"])


def without_blanks(
    columns: Sequence[str], lines: list[tuple[Any, ...]], column: str
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Header and lines, less this column where it is blank in all of them."""
    at = columns.index(column)
    if any(line[at] for line in lines):
        return tuple(columns), lines
    return (*columns[:at], *columns[at + 1 :]), [(*line[:at], *line[at + 1 :]) for line in lines]

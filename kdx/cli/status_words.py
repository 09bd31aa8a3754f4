"""What `kdx status` shows of sweeps and of runs in the same way: workers, searches, notes, and runs not needed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kdx.cli.console import table
from kdx.cli.wording import process_in_words, process_of, time_in_words
from kdx.store.database import Database
from kdx.store.reading import grids, load_sweep
from kdx.store.records import RunState, SearchRecord, SweepSummary
from kdx.store.remarks import NoteRecord
from kdx.store.status import CellTime, WorkRecord
from kdx.sweep.forecast import in_words
from kdx.sweep.lease_holder import Liveness, liveness


@dataclass(frozen=True)
class Worker:
    """A process that claimed a run."""

    work: WorkRecord
    alive: bool
    """Whether it may still work: it was not found dead."""
    place: str
    """In words, such as `process 7 here`."""

    @property
    def plain(self) -> dict[str, Any]:
        """The same for programs."""
        work = self.work
        machine, process = process_of(work.owner) or (None, None)
        return {
            "run": work.run_id,
            "step": work.step,
            "seconds": work.running,
            "lease_left": work.lease_left,
            "device": work.device,
            "gpu": work.gpu,
            "machine": machine,
            "process": process,
            "alive": self.alive,
            "place": self.place,
        }

    @property
    def row(self) -> tuple[int, int, str, str]:
        """Its run, step, time and place, for a table."""
        return self.work.run_id, self.work.step, in_words(self.work.running), self.place


def worker_of(work: WorkRecord) -> Worker:
    """Return who works at a run."""
    alive = work.owner is not None and liveness(work.owner) is not Liveness.GONE
    lapsed = work.lease_left is not None and work.lease_left < 0
    state = ", which is gone" if not alive else ", whose lease has lapsed" if lapsed else ""
    on = "" if work.gpu is None else f", on GPU {work.gpu} ({work.device})"
    place = process_in_words(work.owner)
    return Worker(work, alive, f"{place}{state}{on}" if place else "a process of another kdx")


def search_record(search: SearchRecord) -> dict[str, Any]:
    """Return how far a search is, for programs."""
    return {
        "choices": search.labels,
        "trials": search.wanted,
        "ended": search.ended,
        "runs_of_a_trial": search.seeds,
        "left": search.left,
    }


def trials_in_words(searches: Sequence[SearchRecord]) -> str:
    """Return how many trials of them all have ended."""
    trials = sum(search.wanted for search in searches)
    return f"{trials - sum(search.left for search in searches):,} of {trials:,} trials"


def states_in_words(counts: Mapping[str, int], *, has_rule: bool) -> str:
    """Return how many runs are in each state; if a rule decides how many are needed, pending ones are the most."""
    most = {"pending": "at most "} if has_rule else {}
    return ", ".join(f"{most.get(state, '')}{count:,} {state}" for state, count in counts.items()) or "no runs"


def note_lines(notes: Sequence[tuple[str, Sequence[NoteRecord]]]) -> Iterator[str]:
    """Return a table of notes, each with what it is on."""
    rows = [(what, time_in_words(note.made)[:-3], " ".join(note.text.split())) for what, each in notes for note in each]
    if rows:
        yield ""
        yield from table(("on", "written (UTC)", "note"), rows)


@dataclass(frozen=True)
class NotNeeded:
    """Runs of one sweep that the rule of its seeds will not need; what is left to do is at most the others."""

    why: Mapping[int, str]
    """Run id → the reason, such as `decided after 5 seeds`."""
    by_cell: Counter[str]
    """Cell id → their number."""
    by_state: Counter[RunState]

    def without(self, summary: SweepSummary) -> SweepSummary:
        """Return the counts of the others."""
        counts = {state: count - self.by_state[state] for state, count in summary.counts.items()}
        return replace(summary, counts={state: count for state, count in counts.items() if count})

    def shortened(self, time: CellTime) -> CellTime:
        """Return the time that the others of a cell take."""
        return time._replace(left=time.left - self.by_cell[time.cell_id])


def not_needed_in(database: Database, names: Sequence[str]) -> dict[str, NotNeeded]:
    """Return sweep → its runs that will not be needed, for those of these sweeps that have a rule."""
    by_sweep = {}
    for name, grid in grids(database).items() if names else ():
        if name in names and "seed_rule" in grid:
            # Most sweeps have no such rule, and kdx status does not wait for the tables of the report.
            from kdx.report.seeds_until import unneeded_runs

            sweep = load_sweep(database, name)
            why = unneeded_runs(sweep)
            runs = [run for run in sweep.runs if run.id in why]
            by_sweep[name] = NotNeeded(why, Counter(run.cell_id for run in runs), Counter(run.state for run in runs))
    return by_sweep

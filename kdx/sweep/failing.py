"""Finds failures that would eat a sweep: cells and searches whose runs fail alike.

All of it follows from what is recorded of runs that failed and that nobody has tried again since. So `kdx retry`, or
`kdx resume --failed`, lifts a pause, and every worker sees the same.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from kdx.store import searches
from kdx.store.database import Database
from kdx.store.failures import FailureRecord, failures
from kdx.store.records import FINAL, RunRecord, RunState
from kdx.store.searches import runs_of_trials

ALIKE = 2
"""Runs of a cell that fail alike, with none that completed or diverged, before the others are no longer started."""
IN_A_ROW = 5
"""Different runs that fail one after another in one worker before it starts no more."""

_FRAME = re.compile(r'^ *File "(?P<file>[^"\n]*)", line \d+, in (?P<function>.*)$', re.MULTILINE)
_RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Pause:
    """Why the runs of a cell are not started."""

    signature: str
    """How they failed, see `signature`."""
    runs: int
    """Number of runs that failed so."""
    of: str = "cell"
    """What they are runs of: a cell, or the trials of a search."""

    def __str__(self) -> str:
        return f"{self.runs} runs of its {self.of} failed alike: {self.signature}"


def signature(error: str, traceback: str | None) -> str:
    """Return the kind of an error and its place, without numbers and addresses, which differ from run to run.

    An example is `ValueError in weight (my_kernels.py)`. If no exception was raised, it is the error's line without
    numbers.
    """
    frames = [*_FRAME.finditer(traceback or "")]
    if frames and (raised := _RAISED.search(traceback or "", frames[-1].end())):
        kind = raised["type"].rpartition(".")[2]
        return f"{kind} in {frames[-1]['function']} ({frames[-1]['file'].rpartition('/')[2]})"
    return _NUMBER.sub("…", error.partition("\n")[0])


def paused_cells(failed: Iterable[FailureRecord]) -> dict[str, Pause]:
    """Return cell id → why its other runs are not started, for cells of which `ALIKE` runs failed with one signature.

    Args:
        failed: the failures of cells of which no run is final.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for failure in failed:
        counts[failure.cell_id][signature(failure.error, failure.traceback)] += 1
    most = {cell_id: counter.most_common(1)[0] for cell_id, counter in counts.items()}
    return {cell_id: Pause(text, count) for cell_id, (text, count) in most.items() if count >= ALIKE}


def paused_searches(database: Database, search_ids: Collection[str]) -> dict[str, Pause]:
    """Return search → why its other trials are not started: `ALIKE` runs of trials failed alike, and none is final."""
    failed: dict[int, str] = {}
    for search_id, states in runs_of_trials(database, search_ids).items():
        if not FINAL.intersection(states.values()):
            failed |= {run_id: search_id for run_id, state in states.items() if state is RunState.FAILED}
    # A search is paused like a cell: a fault would go through either, run after run.
    records = failures(database, failed) if len(failed) >= ALIKE else ()
    pauses = paused_cells(failure._replace(cell_id=failed[failure.run_id]) for failure in records)
    return {search_id: replace(pause, of="search") for search_id, pause in pauses.items()}


def try_searches_again(database: Database, search_ids: Collection[str]) -> None:
    """Retry the failed trials of those of these searches that are paused."""
    from kdx.store import recording  # it loads the reader of grids, which `kdx status` does without

    paused = paused_searches(database, search_ids)
    if paused:
        states = runs_of_trials(database, paused)
        searches.reopen(database, paused)
        recording.reset(database, [run_id for runs in states.values() for run_id in runs], (RunState.FAILED,))


def paused_in(database: Database, records: Iterable[RunRecord]) -> dict[str, Pause]:
    """Return the pauses of the cells of these runs, by what a database has.

    Args:
        records: the newest generation of each run of a plan.
    """
    of_cells: dict[str, list[RunRecord]] = defaultdict(list)
    for record in records:
        of_cells[record.cell_id].append(record)
    failed: list[int] = []
    for runs in of_cells.values():
        of_cell = [run.id for run in runs if run.state is RunState.FAILED]
        if len(of_cell) >= ALIKE and not any(run.state in FINAL for run in runs):
            failed += of_cell
    return paused_cells(failures(database, failed)) if failed else {}

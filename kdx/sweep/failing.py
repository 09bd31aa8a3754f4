"""Finds failures that would eat a sweep: cells and searches whose runs fail alike.

All of it follows from what is recorded of runs that failed and that nobody has tried again since. So `kdx retry`, or
`kdx resume --failed`, lifts a pause, and every worker sees the same.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kdx.store import reading
from kdx.store.database import Database
from kdx.store.records import FINAL, RunRecord, RunState
from kdx.store.unfinished import FailureRecord, failures

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


def paused(failed: Iterable[FailureRecord]) -> dict[str, Pause]:
    """Return cell id, or id of a search → why its other runs are not started: `ALIKE` failed with one signature.

    Args:
        failed: the failures of cells and searches of which no run is final.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    searches = set()
    for failure in failed:
        counts[failure.search_id or failure.cell_id][signature(failure.error, failure.traceback)] += 1
        searches.add(failure.search_id)
    most = {key: counter.most_common(1)[0] for key, counter in counts.items()}
    return {
        key: Pause(text, count, "search" if key in searches else "cell")
        for key, (text, count) in most.items()
        if count >= ALIKE
    }


def paused_in(database: Database, records: Iterable[RunRecord]) -> dict[str, Pause]:
    """Return the pauses of the cells of these runs, by what a database has; of runs of trials, those of their searches.

    A search is paused like a cell: a fault would go through either, run after run.

    Args:
        records: the newest generation of each run of a plan; of a search, every run.
    """
    alike: dict[str, list[RunRecord]] = defaultdict(list)
    for record in records:
        alike[record.search_id or record.cell_id].append(record)
    failed: list[int] = []
    for runs in alike.values():
        ids = [run.id for run in runs if run.state is RunState.FAILED]
        if len(ids) >= ALIKE and not any(run.state in FINAL for run in runs):
            failed += ids
    return paused(failures(database, failed)) if failed else {}


def paused_searches(database: Database, search_ids: Collection[str]) -> dict[str, Pause]:
    """Return search → why its other trials are not started, for those of these searches that are paused."""
    with database.read() as connection:
        return paused_in(database, reading.runs_of_searches(connection, search_ids))


def try_searches_again(database: Database, search_ids: Collection[str]) -> None:
    """Reset the failed runs of those of these searches that are paused."""
    from kdx.store import recording  # it loads the reader of grids, which `kdx status` does without

    with database.read() as connection:
        runs = reading.runs_of_searches(connection, paused_searches(database, search_ids))
    recording.reset(database, [run.id for run in runs], (RunState.FAILED,))

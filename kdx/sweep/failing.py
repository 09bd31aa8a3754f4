"""Failures that would eat a sweep: cells and searches whose runs fail alike, and machines whose last runs all failed.

All of it follows from what is recorded of runs that failed and that nobody has tried again since. So `kdx retry`, or
`kdx resume --failed`, lifts a pause, and every worker sees the same.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from kdx.store import searches
from kdx.store.database import Database
from kdx.store.failures import FailureRecord, failures, last_successes
from kdx.store.records import FINAL, RunRecord, RunState
from kdx.store.searches import runs_of_trials
from kdx.sweep.lease_holder import machine_of

ALIKE = 2
"""Runs of a cell that fail alike, with none that came to its end, before the others are no longer begun."""
IN_A_ROW = 5
"""Runs that fail one after another in one worker, all of them different, before it begins no more."""

_FRAME = re.compile(r'^ *File "(?P<file>[^"\n]*)", line \d+, in (?P<function>.*)$', re.MULTILINE)
_RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Pause:
    """Why the runs of a cell are not begun."""

    signature: str
    """How they failed, see `signature`."""
    runs: int
    """How many failed so."""
    of: str = "cell"
    """What they are runs of: a cell, or the trials of a search."""

    def __str__(self) -> str:
        return f"{self.runs} runs of its {self.of} failed alike: {self.signature}"


def signature(error: str, traceback: str | None) -> str:
    """The kind of an error and its place, without numbers and addresses, which differ from run to run.

    Such as `ValueError in weight (my_kernels.py)`; where no exception was raised, the error's line without numbers.
    """
    frames = [*_FRAME.finditer(traceback or "")]
    if frames and (raised := _RAISED.search(traceback or "", frames[-1].end())):
        kind = raised["type"].rpartition(".")[2]
        return f"{kind} in {frames[-1]['function']} ({frames[-1]['file'].rpartition('/')[2]})"
    return _NUMBER.sub("…", error.partition("\n")[0])


def paused_cells(failed: Iterable[FailureRecord]) -> dict[str, Pause]:
    """Cell id → why its other runs are not begun, for cells of which `ALIKE` runs failed with one signature.

    Args:
        failed: the failures of cells of which no run has come to its end.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in failed:
        counts[one.cell_id][signature(one.error, one.traceback)] += 1
    most = {cell_id: counter.most_common(1)[0] for cell_id, counter in counts.items()}
    return {cell_id: Pause(text, count) for cell_id, (text, count) in most.items() if count >= ALIKE}


def paused_searches(database: Database, search_ids: Collection[str]) -> dict[str, Pause]:
    """Search → why its other trials are not begun: `ALIKE` runs of trials failed alike, and none came to its end."""
    failed: dict[int, str] = {}
    for search_id, states in runs_of_trials(database, search_ids).items():
        if not FINAL.intersection(states.values()):
            failed |= {run_id: search_id for run_id, state in states.items() if state is RunState.FAILED}
    # Of a search, as of a cell: both are what a fault would go through one after another.
    records = failures(database, failed) if len(failed) >= ALIKE else ()
    found = paused_cells(one._replace(cell_id=failed[one.run_id]) for one in records)
    return {search_id: replace(pause, of="search") for search_id, pause in found.items()}


def try_searches_again(database: Database, search_ids: Collection[str]) -> None:
    """Takes up the failed trials of those of these searches that are paused."""
    from kdx.store import recording  # which reads grids, and whoever only looks does not

    paused = paused_searches(database, search_ids)
    if paused:
        states = runs_of_trials(database, paused)
        searches.reopen(database, paused)
        recording.reset(database, [run_id for its in states.values() for run_id in its], (RunState.FAILED,))


def failing_machines(failed: Iterable[FailureRecord], successes: Mapping[str, float]) -> dict[str, list[FailureRecord]]:
    """Machine → its failures since its last success, for machines that have `IN_A_ROW` of them.

    Not processes count but machines, since a worker that ended may be started again, as by systemd.

    Args:
        successes: process → when a run of it last came to a final state.
    """
    last: dict[str, float] = {}
    for owner, ended in successes.items():
        last[machine_of(owner)] = max(ended, last.get(machine_of(owner), ended))
    since: dict[str, list[FailureRecord]] = defaultdict(list)
    for one in failed:
        if one.ended > last.get(machine_of(one.owner), float("-inf")):
            since[machine_of(one.owner)].append(one)
    return {name: its for name, its in since.items() if len(its) >= IN_A_ROW}


def failing_in(database: Database) -> dict[str, list[FailureRecord]]:
    """The same of what a database has."""
    with database.read():
        failed = failures(database)
        successes = last_successes(database, failed[0].ended) if len(failed) >= IN_A_ROW else {}
    return failing_machines(failed, successes)


class PausedCells:
    """The paused cells among the runs of a plan; what was found stays until another run has ended or is tried again."""

    def __init__(self) -> None:
        self._failed: frozenset[tuple[int, int]] = frozenset()
        self._found: Mapping[str, Pause] = {}

    def __call__(self, database: Database, records: Iterable[RunRecord]) -> Mapping[str, Pause]:
        """Cell id → why its runs are not begun.

        Args:
            records: the newest generation of each run of the plan.
        """
        of_cells: dict[str, list[RunRecord]] = defaultdict(list)
        for one in records:
            of_cells[one.cell_id].append(one)
        failed: list[RunRecord] = []
        for its in of_cells.values():
            those = [one for one in its if one.state is RunState.FAILED]
            if len(those) >= ALIKE and not any(one.state in FINAL for one in its):
                failed += those
        which = frozenset((one.id, one.attempt) for one in failed)
        if which != self._failed:
            self._found = paused_cells(failures(database, [one.id for one in failed])) if failed else {}
            self._failed = which
        return self._found

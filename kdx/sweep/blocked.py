"""Finds what blocks runs of a sweep: failures that pause their cells or searches, and conditions that others have.

A cell or a search is paused when its runs fail alike, since the fault would go through all of them. All of it follows
from what is recorded of runs that failed and that nobody has tried again since. So `kdx retry` lifts the pause of a
cell, `kdx resume` that of a search, and every worker sees the same.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.run_files.files import files_beside, resume_step
from kdx.sanitize import sanitize
from kdx.shell import kdx_command
from kdx.store import reading, status
from kdx.store.database import Database
from kdx.store.machine import machine
from kdx.store.records import FINAL, RunRecord, RunState, SearchRecord
from kdx.store.status import InProgress
from kdx.sweep.lease_holder import machine_of

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

    def as_json(self) -> dict[str, Any]:
        """Return the pause for programs."""
        return {"runs": self.runs, "failed": self.signature}


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


def paused_in(database: Database, records: Iterable[RunRecord]) -> dict[str, Pause]:
    """Return the pauses of the cells of these runs, by what a database has; of runs of trials, those of their searches.

    They are paused where `ALIKE` runs failed with one signature, and none is final.

    Args:
        records: the newest generation of each run of a plan; of a search, every run.
    """
    groups: dict[str, list[RunRecord]] = defaultdict(list)
    for record in records:
        groups[record.search_id or record.cell_id].append(record)
    failed: dict[int, RunRecord] = {}
    for runs in groups.values():
        failures = {run.id: run for run in runs if run.state is RunState.FAILED}
        if len(failures) >= ALIKE and not any(run.state in FINAL for run in runs):
            failed |= failures
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for run_id, traceback in status.tracebacks(database, failed).items() if failed else ():
        run = failed[run_id]
        counts[run.search_id or run.cell_id][signature(run.error or "", traceback)] += 1
    searches = {run.search_id for run in failed.values()}
    most = {key: counter.most_common(1)[0] for key, counter in counts.items()}
    return {
        key: Pause(text, count, "search" if key in searches else "cell")
        for key, (text, count) in most.items()
        if count >= ALIKE
    }


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


@dataclass(frozen=True)
class Blocked:
    """What blocks the runs of a sweep."""

    paused: Mapping[str, Pause]
    """Cell id → why its runs are not started."""
    waits_for: Mapping[int, str]
    """Run id → what it waits for."""
    searches: tuple[tuple[SearchRecord, Pause], ...] = ()
    """The searches whose trials are not started, and why."""

    def lines(self, sweep: str, options: str) -> list[str]:
        """Return a line for each paused cell and paused search, with what can be done.

        Args:
            options: options of the suggested command, such as ` --db FILE`.
        """
        retry = kdx_command("retry", sweep, f"state={RunState.FAILED}", options=options)
        resume = kdx_command("resume", sweep, options=options)
        sweep = sanitize(sweep)
        lines = [f"cell {cell_id[:8]} of {sweep} is paused: {pause}; {retry}" for cell_id, pause in self.paused.items()]
        for search, pause in self.searches:
            choices = " · ".join(search.labels.values()) or search.id[:8]
            lines.append(f"search of {choices} of {sweep} is paused: {pause}; {resume}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            "paused": [{"cell": cell_id, **pause.as_json()} for cell_id, pause in self.paused.items()],
            "paused_searches": [
                {"choices": dict(search.labels), "search": search.id, **pause.as_json()}
                for search, pause in self.searches
            ],
        }


def blocked_in(database: Database, sweep_ids: Collection[int]) -> dict[int, Blocked]:
    """Return sweep → what blocks its runs, by what is recorded of them and by the files that are here."""
    with database.read() as connection:
        halted = status.halted(database, sweep_ids)
        failing = {key: _failing_cells(runs) for key, runs in halted.items()}
        runs_of = {key: reading.runs(database, key, cells) for key, cells in failing.items() if cells}
        paused = {key: paused_in(database, runs) for key, runs in runs_of.items()}
        stopped = [run for runs in halted.values() for run in runs if run.state is not RunState.FAILED]
        in_progress = status.in_progress(database, [run.id for run in stopped]) if stopped else {}
        searches = reading.searches_of_sweeps(connection, sweep_ids)
        of_searches = {key: _paused_searches(database, own) for key, own in searches.items()}
    files = files_beside(database.location)
    blocked = {}
    for key in sweep_ids:
        pauses = paused.get(key, {})
        new = [run for run in runs_of.get(key, ()) if run.state is RunState.PENDING and not run.attempt]
        waits_for = {run.id: f"paused: {pauses[run.cell_id]}" for run in new if run.cell_id in pauses}
        for run in halted.get(key, ()):
            if run.id in in_progress and (why := _waits_for(run, in_progress[run.id], files)):
                waits_for[run.id] = why
        blocked[key] = Blocked(pauses, waits_for, of_searches.get(key, ()))
    return blocked


def on_other_host(record: RunRecord, progress: InProgress, *, has_checkpoint: bool) -> str | None:
    """Return where the checkpoint of a run is; None if it is here, or nowhere.

    Args:
        has_checkpoint: whether there is one here.
    """
    host = machine_of(progress.owner)
    if has_checkpoint or record.checkpoint_step is None or host == machine():
        return None
    return f"its checkpoint at step {record.checkpoint_step} is not here but on machine {host[:8]}"


def _failing_cells(runs: Iterable[RunRecord]) -> list[str]:
    counts = Counter(run.cell_id for run in runs if run.state is RunState.FAILED)
    return [cell_id for cell_id, count in counts.items() if count >= ALIKE]


def _paused_searches(database: Database, searches: Sequence[SearchRecord]) -> tuple[tuple[SearchRecord, Pause], ...]:
    pauses = paused_in(database, [run for search in searches for trial in search.trials for run in trial.runs])
    return tuple((search, pauses[search.id]) for search in searches if search.id in pauses)


def _waits_for(run: RunRecord, progress: InProgress, files: Path) -> str | None:
    if progress.refusals:
        *_, changes = progress.refusals.values()
        return f"waits for a worker like machine {machine_of(progress.owner)[:8]}: {changes}"
    where = on_other_host(run, progress, has_checkpoint=resume_step(files, run) is not None)
    return None if where is None else f"waits for a worker that sees its files: {where}"

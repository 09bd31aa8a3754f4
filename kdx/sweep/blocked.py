"""Finds what blocks runs of a sweep: failures that pause their cells, and conditions or files that others have."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.run_files.files import files_beside, resume_step
from kdx.sanitize import sanitize
from kdx.shell import kdx_command
from kdx.store import reading, unfinished
from kdx.store.database import Database
from kdx.store.machine import machine
from kdx.store.records import RunRecord, RunState, SearchRecord
from kdx.store.unfinished import InProgress
from kdx.sweep.failing import ALIKE, Pause, paused_in
from kdx.sweep.lease_holder import machine_of


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
        again = kdx_command("resume", sweep, options=f" --failed{options}")
        sweep = sanitize(sweep)
        lines = [f"cell {cell_id[:8]} of {sweep} is paused: {pause}; {again}" for cell_id, pause in self.paused.items()]
        for search, pause in self.searches:
            choices = " · ".join(search.labels.values()) or search.id[:8]
            lines.append(f"search of {choices} of {sweep} is paused: {pause}; {again}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            "paused": [
                {"cell": cell_id, "runs": pause.runs, "failed": pause.signature}
                for cell_id, pause in self.paused.items()
            ],
            "paused_searches": [
                {"choices": dict(search.labels), "search": search.id, "runs": pause.runs, "failed": pause.signature}
                for search, pause in self.searches
            ],
        }


def blocked_in(database: Database, sweep_ids: Collection[int]) -> dict[int, Blocked]:
    """Return sweep → what blocks its runs, by what is recorded of them and by the files that are here."""
    with database.read() as connection:
        halted = unfinished.halted(database, sweep_ids)
        failed = {key: [run for run in runs if run.state is RunState.FAILED] for key, runs in halted.items()}
        paused = {key: _paused_cells(database, key, runs) for key, runs in failed.items() if runs}
        stopped = [run for runs in halted.values() for run in runs if run.state is not RunState.FAILED]
        in_progress = unfinished.in_progress(database, [run.id for run in stopped]) if stopped else {}
        asked = reading.searches_of_sweeps(connection, sweep_ids)
        of_searches = {key: _paused_searches(database, own) for key, own in asked.items()}
        waiting = {
            key: [
                run for run in reading.runs(database, key, cells) if run.state is RunState.PENDING and not run.attempt
            ]
            for key, cells in paused.items()
            if cells
        }
    files = files_beside(database.location)
    blocked = {}
    for key in sweep_ids:
        pauses = paused.get(key, {})
        waits_for = {run.id: f"paused: {pauses[run.cell_id]}" for run in waiting.get(key, ())}
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


def _paused_cells(database: Database, sweep_id: int, failed: Iterable[RunRecord]) -> Mapping[str, Pause]:
    counts = Counter(run.cell_id for run in failed)
    often = [cell_id for cell_id, count in counts.items() if count >= ALIKE]
    return paused_in(database, reading.runs(database, sweep_id, often)) if often else {}


def _paused_searches(database: Database, asked: Sequence[SearchRecord]) -> tuple[tuple[SearchRecord, Pause], ...]:
    pauses = paused_in(database, [run for search in asked for trial in search.trials for run in trial.runs])
    return tuple((search, pauses[search.id]) for search in asked if search.id in pauses)


def _waits_for(run: RunRecord, progress: InProgress, files: Path) -> str | None:
    if progress.refusals:
        *_, changes = progress.refusals.values()
        return f"waits for a worker like machine {machine_of(progress.owner)[:8]}: {changes}"
    where = on_other_host(run, progress, has_checkpoint=resume_step(files, run) is not None)
    return None if where is None else f"waits for a worker that sees its files: {where}"

"""What holds up runs of a sweep: failures that pause their cells; conditions or checkpoints that are elsewhere."""

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.run_files.files import files_beside, resume_step
from kdx.store import reading
from kdx.store.begun import BegunRecord, begun
from kdx.store.database import Database
from kdx.store.failures import FailureRecord, failures, last_successes
from kdx.store.records import RunRecord, RunState
from kdx.sweep.elsewhere import elsewhere
from kdx.sweep.failing import ALIKE, Pause, PausedCells, failing_workers, signature


@dataclass(frozen=True)
class HeldUp:
    """What holds up the runs of a sweep."""

    paused: Mapping[str, Pause]
    """Cell id → why its runs are not begun."""
    waits_for: Mapping[int, str]
    """Run id → what it waits for."""
    failing: Mapping[str, tuple[FailureRecord, ...]]
    """Process → its failures, where so many came one after another that a worker begins no more; with runs of this
    sweep among them."""

    def why(self, run_id: int) -> str | None:
        """What a run waits for; None: nothing holds it up."""
        return self.waits_for.get(run_id)

    def lines(self, sweep: str, db: str) -> list[str]:
        """The paused cells and the failing workers, each in one line with what can be done.

        Args:
            db: the option of a command that names the database; empty for the default.
        """
        again = f"kdx retry {shlex.quote(sweep)} --failed{db}"
        found = [f"cell {cell_id[:8]} of {sweep} is paused: {pause}; {again}" for cell_id, pause in self.paused.items()]
        for owner, its in self.failing.items():
            parts = owner.split("/")
            who = f"process {parts[3]} on machine {parts[0][:8]}" if len(parts) == 6 else "a process of another kdx"
            how = signature(its[-1].error, its[-1].traceback)
            found.append(f"{who}: its last {len(its)} runs failed one after another, the last: {how}; {again}")
        return found

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "paused": [
                {"cell": cell_id, "runs": pause.runs, "failed": pause.signature}
                for cell_id, pause in self.paused.items()
            ],
            "failing_workers": [
                {
                    "machine": owner.partition("/")[0],
                    "runs": [one.run_id for one in its],
                    "failed": signature(its[-1].error, its[-1].traceback),
                }
                for owner, its in self.failing.items()
            ],
        }


def held_up_in(database: Database, sweep_ids: Collection[int]) -> dict[int, HeldUp]:
    """Sweep → what holds up its runs, by what is recorded of them and by the files that lie here."""
    with database.read():
        halted = reading.halted(database, sweep_ids)
        failed_in = {key: [one for one in its if one.state is RunState.FAILED] for key, its in halted.items()}
        paused = {key: _paused_cells(database, key, its) for key, its in failed_in.items() if its}
        stopped = [one for its in halted.values() for one in its if one.state is not RunState.FAILED]
        since = begun(database, [one.id for one in stopped]) if stopped else {}
        failed = failures(database) if any(failed_in.values()) else ()
        successes = last_successes(database, {one.owner for one in failed}) if failed else {}
        waiting = {
            key: [
                one for one in reading.runs(database, key, cells) if one.state is RunState.PENDING and not one.attempt
            ]
            for key, cells in paused.items()
            if cells
        }
    of_workers = failing_workers(failed, successes)
    files = files_beside(database.location)
    found = {}
    for key in sweep_ids:
        pauses = paused.get(key, {})
        waits = {one.id: f"paused: {pauses[one.cell_id]}" for one in waiting.get(key, ())}
        for one in halted.get(key, ()):
            if (its := since.get(one.id)) and (why := _waits_for(one, its, files)):
                waits[one.id] = why
        ids = {one.id for one in failed_in.get(key, ())}
        failing = {owner: tuple(its) for owner, its in of_workers.items() if any(one.run_id in ids for one in its)}
        found[key] = HeldUp(pauses, waits, failing)
    return found


def _paused_cells(database: Database, sweep_id: int, failed: Iterable[RunRecord]) -> Mapping[str, Pause]:
    counts = Counter(one.cell_id for one in failed)
    often = [cell_id for cell_id, count in counts.items() if count >= ALIKE]
    return PausedCells()(database, reading.runs(database, sweep_id, often)) if often else {}


def _waits_for(run: RunRecord, begun: BegunRecord, files: Path) -> str | None:
    if begun.refusals:
        *_, changes = begun.refusals.values()
        return f"waits for a worker like machine {begun.owner.partition('/')[0][:8]}: {changes}"
    where = elsewhere(run, begun, has_checkpoint=resume_step(files, run) is not None)
    return None if where is None else f"waits for a worker that sees its files: {where}"

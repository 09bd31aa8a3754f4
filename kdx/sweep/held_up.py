"""What holds up runs of a sweep: failures that pause their cells; conditions or checkpoints that are elsewhere."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.run_files.files import files_beside, resume_step
from kdx.sanitize import sanitize
from kdx.shell import kdx_command
from kdx.store import reading, searches
from kdx.store.begun import BegunRecord, begun
from kdx.store.database import Database
from kdx.store.failures import FailureRecord
from kdx.store.records import RunRecord, RunState, SearchRecord
from kdx.sweep.elsewhere import elsewhere
from kdx.sweep.failing import ALIKE, Pause, PausedCells, failing_in, paused_searches, signature


@dataclass(frozen=True)
class HeldUp:
    """What holds up the runs of a sweep."""

    paused: Mapping[str, Pause]
    """Cell id → why its runs are not begun."""
    waits_for: Mapping[int, str]
    """Run id → what it waits for."""
    failing: Mapping[str, tuple[FailureRecord, ...]]
    """Machine → its failures, where so many came one after another that a worker begins no more; with runs of this
    sweep among them."""
    searches: tuple[tuple[SearchRecord, Pause], ...] = ()
    """The searches whose trials are not begun, and why."""

    def why(self, run_id: int) -> str | None:
        """What a run waits for; None: nothing holds it up."""
        return self.waits_for.get(run_id)

    def lines(self, sweep: str, options: str) -> list[str]:
        """The paused cells and the failing workers, each in one line with what can be done.

        Args:
            options: of the suggested command, such as ` --db FILE`.
        """
        again = kdx_command("resume", sweep, options=f" --failed{options}")
        sweep = sanitize(sweep)
        found = [f"cell {cell_id[:8]} of {sweep} is paused: {pause}; {again}" for cell_id, pause in self.paused.items()]
        for search, pause in self.searches:
            of = " · ".join(search.labels.values()) or search.id[:8]
            found.append(f"search of {of} of {sweep} is paused: {pause}; {again}")
        for machine, its in self.failing.items():
            how = signature(its[-1].error, its[-1].traceback)
            where = f"machine {machine[:8]}"
            found.append(f"{where}: its last {len(its)} runs failed one after another, the last: {how}; {again}")
        return found

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "paused": [
                {"cell": cell_id, "runs": pause.runs, "failed": pause.signature}
                for cell_id, pause in self.paused.items()
            ],
            "paused_searches": [
                {"choices": dict(one.labels), "search": one.id, "runs": pause.runs, "failed": pause.signature}
                for one, pause in self.searches
            ],
            "failing_workers": [
                {
                    "machine": machine,
                    "runs": [one.run_id for one in its],
                    "failed": signature(its[-1].error, its[-1].traceback),
                }
                for machine, its in self.failing.items()
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
        of_machines = failing_in(database) if any(failed_in.values()) else {}
        of_searches = {key: _paused_searches(database, key) for key in searches.that_search(database, sweep_ids)}
        waiting = {
            key: [
                one for one in reading.runs(database, key, cells) if one.state is RunState.PENDING and not one.attempt
            ]
            for key, cells in paused.items()
            if cells
        }
    files = files_beside(database.location)
    found = {}
    for key in sweep_ids:
        pauses = paused.get(key, {})
        waits = {one.id: f"paused: {pauses[one.cell_id]}" for one in waiting.get(key, ())}
        for one in halted.get(key, ()):
            if (its := since.get(one.id)) and (why := _waits_for(one, its, files)):
                waits[one.id] = why
        ids = {one.id for one in failed_in.get(key, ())}
        failing = {each: tuple(its) for each, its in of_machines.items() if any(one.run_id in ids for one in its)}
        found[key] = HeldUp(pauses, waits, failing, of_searches.get(key, ()))
    return found


def _paused_cells(database: Database, sweep_id: int, failed: Iterable[RunRecord]) -> Mapping[str, Pause]:
    counts = Counter(one.cell_id for one in failed)
    often = [cell_id for cell_id, count in counts.items() if count >= ALIKE]
    return PausedCells()(database, reading.runs(database, sweep_id, often)) if often else {}


def _paused_searches(database: Database, sweep_id: int) -> tuple[tuple[SearchRecord, Pause], ...]:
    asked = searches.of_sweep(database, sweep_id)
    pauses = paused_searches(database, {one.id for one in asked})
    return tuple((one, pauses[one.id]) for one in asked if one.id in pauses)


def _waits_for(run: RunRecord, begun: BegunRecord, files: Path) -> str | None:
    if begun.refusals:
        *_, changes = begun.refusals.values()
        return f"waits for a worker like machine {begun.owner.partition('/')[0][:8]}: {changes}"
    where = elsewhere(run, begun, has_checkpoint=resume_step(files, run) is not None)
    return None if where is None else f"waits for a worker that sees its files: {where}"

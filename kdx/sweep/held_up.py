"""What holds up runs of a sweep: failures that pause their cells; conditions or checkpoints that are elsewhere."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kdx.run_files.files import files_beside, resume_step
from kdx.store import reading, searches
from kdx.store.begun import begun
from kdx.store.database import Database
from kdx.store.failures import FailureRecord
from kdx.store.records import RunState, SearchRecord
from kdx.sweep.failing import Pause, PausedCells, failing_in, paused_searches, signature
from kdx.sweep.left_to_others import elsewhere


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

    def lines(self, sweep: str, db: str) -> list[str]:
        """The paused cells and the failing workers, each in one line with what can be done.

        Args:
            db: the option of a command that names the database; empty for the default.
        """
        again = f"kdx retry {shlex.quote(sweep)} --failed{db}"
        found = [f"cell {cell_id[:8]} of {sweep} is paused: {pause}; {again}" for cell_id, pause in self.paused.items()]
        for search, pause in self.searches:
            of = " · ".join(search.labels.values()) or search.id[:8]
            found.append(f"search of {of} of {sweep} is paused: {pause}; kdx resume {shlex.quote(sweep)} --failed{db}")
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


def held_up_in(database: Database, sweep_id: int) -> HeldUp:
    """What holds up the runs of a sweep, by what is recorded of them and by the files that lie here."""
    with database.read():
        runs = reading.runs(database, sweep_id)
        paused = PausedCells()(database, runs)
        stopped = [one for one in runs if one.attempt and one.state in (RunState.PENDING, RunState.INTERRUPTED)]
        since = begun(database, [one.id for one in stopped]) if stopped else {}
        failing = failing_in(database) if any(one.state is RunState.FAILED for one in runs) else {}
    waits: dict[int, str] = {}
    files = files_beside(database.location)
    for one in runs:
        if one.state is RunState.PENDING and not one.attempt and one.cell_id in paused:
            waits[one.id] = f"paused: {paused[one.cell_id]}"
    for one in stopped:
        if (its := since.get(one.id)) is None:
            continue
        if its.refusals:
            *_, changes = its.refusals.values()
            waits[one.id] = f"waits for a worker like machine {its.owner.partition('/')[0][:8]}: {changes}"
        elif where := elsewhere(one, its, has_checkpoint=resume_step(files, one) is not None):
            waits[one.id] = f"waits for a worker that sees its files: {where}"
    ids = {one.id for one in runs}
    of_sweep = {machine: tuple(its) for machine, its in failing.items() if any(one.run_id in ids for one in its)}
    asked = searches.of_sweep(database, sweep_id)
    of_search = paused_searches(database, {one.id for one in asked}) if asked else {}
    return HeldUp(paused, waits, of_sweep, tuple((one, of_search[one.id]) for one in asked if one.id in of_search))

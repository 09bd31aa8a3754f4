"""Finds the sweeps of a database in which there is something to do, as plans for a worker.

It looks again now and then, and so sees a sweep that is added, planned anew or retried meanwhile. A sweep that tunes is
searched first, and continues with the winners. Cells whose corpus or whose code is not available here are left to
other workers; if they decide how many seeds or which cells a sweep needs, the whole sweep is.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.grid.plan import Plan, PlannedCell
from kdx.store import reading
from kdx.store.database import Database
from kdx.store.find import sweep_named
from kdx.store.plan_from_records import plan_at_hand, with_searches
from kdx.store.recording import register_winners
from kdx.store.records import ENDED, SweepSummary
from kdx.sweep.blocked import paused_searches
from kdx.sweep.decide import lacks_evaluations
from kdx.tune.search import Searching

LOOK_EVERY = 10.0
"""Seconds between two looks for sweeps that were added."""


class Watcher(Protocol):
    """Receives the sweeps that are found; the command line shows them."""

    def opened(self, plan: Plan) -> None:
        """There is something to do in a sweep, and its runs may start from now on."""

    def lacking(self, sweep: str, cells: int | None, why: KdxError) -> None:
        """n cells of a sweep cannot be run here; None: all of them."""

    def searched(self, search: Searching) -> None:
        """The search of a sweep is done, and the winners are planned."""


@dataclass
class _Open:
    """A sweep in which there is something to do."""

    plan: Plan
    search: Searching | None
    """None if nothing is left to search."""


class OpenSweeps:
    """The plans of the sweeps in which there is something to do, the last planned first."""

    def __init__(
        self,
        database: Database,
        names: Sequence[str],
        components: Path | None,
        watcher: Watcher,
        works: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start without any open sweep.

        Args:
            names: names of the sweeps; empty for every sweep.
            components: the folder of custom components.
            works: returns whether runs are computed. Then corpora are prepared beside that, which may take longer than
                a lease.
            clock: returns seconds.
        """
        self._database = database
        self._names = names
        self._components = components
        self._watcher = watcher
        self._works = works
        self._clock = clock
        self._looked: float | None = None
        self._seen: dict[int, tuple[object, _Open | None]] = {}
        """Sweep → its state when it was read, and what is to do in it."""
        self._order: tuple[int, ...] = ()
        self._preparing: dict[int, tuple[Plan, Future[dict[str, KdxError]]]] = {}
        """Sweep → the plan whose corpora are being prepared, and the preparation."""
        self.incomplete: set[str] = set()
        """Sweeps with cells that cannot be run here, or of which a search has no winner."""

    def __call__(self) -> tuple[Plan, ...]:
        """Return the plans as they are now.

        Raises:
            KdxError: at the first call, if there is no sweep of a given name.
        """
        if self._looked is None or self._clock() - self._looked >= LOOK_EVERY or not self._works():
            self._look()
            self._looked = self._clock()
        plans = self._plans()
        if None in plans:
            self._look()
            plans = self._plans()
        return tuple(plan for plan in plans if plan is not None)

    def _plans(self) -> list[Plan | None]:
        opened = [(key, self._seen[key][1]) for key in self._order if key in self._seen]
        return [self._now(key, sweep) for key, sweep in opened if sweep is not None]

    def _look(self) -> None:
        summaries = reading.sweeps(self._database)
        if self._looked is None:
            for name in self._names:
                sweep_named(self._database, name)
        wanted = [summary for summary in summaries if not self._names or summary.name in self._names]
        self._order = tuple(summary.id for summary in wanted)
        for summary in wanted:
            ended = not set(summary.counts) - ENDED
            state = (summary.updated, frozenset(summary.counts.items()) if ended else None)
            if summary.id not in self._seen or self._seen[summary.id][0] != state:
                opened = self._open(summary, ended=ended)
                if summary.id not in self._preparing:
                    self._seen[summary.id] = state, opened

    def _open(self, summary: SweepSummary, *, ended: bool) -> _Open | None:
        """Return the sweep if there is something to do in it; None if not, or while its corpora are prepared."""
        self.incomplete.discard(summary.name)
        preparing, prepared = self._preparing.pop(summary.id, (None, None))
        try:
            record = reading.load_sweep(self._database, summary.id)
            searching = record.lacks_winners
            if ended and not searching and not lacks_evaluations(self._database, record):
                return None
            plan, lacking = plan_at_hand(record, self._components)
            plan = with_searches(plan, record.searches, self._components) if searching else plan
        except KdxError as error:
            if error.exit_code != KdxError.exit_code:
                raise
            self._leave(summary.name, None, error)
            return None
        if prepared is None or preparing != plan:
            prepared = _prepare_beside(plan)
        if self._works() and not prepared.done():
            self._preparing[summary.id] = plan, prepared
            return None
        lacking |= prepared.result()
        whole = bool(lacking) and (searching or plan.seed_rule is not None)
        for why, count in _counted(lacking):
            self._leave(summary.name, None if whole else count, why)
        if whole:
            return None
        plan = replace(plan, cells=tuple(cell for cell in plan.cells if cell.id not in lacking))
        if not plan.cells:
            return None
        self._watcher.opened(plan)
        search = Searching(self._database, plan) if searching else None
        return _Open(plan, search)

    def _leave(self, name: str, cells: int | None, why: KdxError) -> None:
        self.incomplete.add(name)
        self._watcher.lacking(name, cells, why)

    def _now(self, sweep_id: int, sweep: _Open) -> Plan | None:
        """Return the plan of a sweep or, while it is searched, of the trials that may run; None if outdated."""
        if sweep.search is None:
            return sweep.plan
        trials = sweep.search.advance()
        if not sweep.search.done and not self._are_paused(trials):
            return trials
        plan = sweep.search.with_winners()
        with self._database.read() as connection:
            planned = {cell.id for cell in reading.planned_cells(connection, sweep_id)}
        if {cell.id for cell in plan.trained} - planned:
            if not register_winners(self._database, plan):
                del self._seen[sweep_id]
                return None
            self._watcher.searched(sweep.search)
        if plan.searched:
            self.incomplete.add(plan.name)
        sweep.plan, sweep.search = plan, None
        return plan

    def _are_paused(self, trials: Plan) -> bool:
        """Return whether none of the remaining trials starts, so that only winners of other searches can be trained."""
        left = {run.search_id for run in trials.runs if run.search_id}
        return bool(left) and left <= paused_searches(self._database, left).keys()


def _prepare_beside(plan: Plan) -> "Future[dict[str, KdxError]]":
    """Prepare a plan's corpora beside what else this process does.

    Returns:
        Cell id → why its corpus is not available here, once that is known; or the StorageError of a cache that cannot
        be written.
    """
    prepared: Future[dict[str, KdxError]] = Future()

    def prepare() -> None:
        try:
            prepared.set_result(_prepare(plan))
        except BaseException as fault:
            prepared.set_exception(fault)

    # The thread is a daemon, so that a worker that is asked to stop does not wait for it.
    threading.Thread(target=prepare, daemon=True).start()
    return prepared


def _prepare(plan: Plan) -> dict[str, KdxError]:
    by_corpus: dict[str, list[PlannedCell]] = {}
    for cell in plan.cells:
        by_corpus.setdefault(cell.spec.data.corpus, []).append(cell)
    lacking: dict[str, KdxError] = {}
    for cells in by_corpus.values():
        try:
            prepare_data(replace(plan, cells=tuple(cells)))
        except KdxError as error:
            if error.exit_code != KdxError.exit_code:
                raise
            lacking |= {cell.id: error for cell in cells}
    return lacking


def _counted(lacking: dict[str, KdxError]) -> list[tuple[KdxError, int]]:
    """Return each reason with the number of its cells."""
    reasons = {str(why): why for why in lacking.values()}
    counts = Counter(map(str, lacking.values()))
    return [(why, counts[text]) for text, why in reasons.items()]

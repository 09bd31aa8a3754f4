"""The runs that the rule of a sweep's seeds will not need, for commands that count runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kdx.store.database import Database
from kdx.store.reading import grids, load_sweep
from kdx.store.records import RunState, SweepSummary
from kdx.store.status import CellTime


@dataclass(frozen=True)
class Spared:
    """Runs of one sweep that will not be needed; what is left to do is at most the others."""

    why: dict[int, str]
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


def spared_of(database: Database, names: Sequence[str]) -> dict[str, Spared]:
    """Return sweep → its runs that will not be needed, for those of these sweeps that have a rule."""
    found = {}
    for name, grid in grids(database).items() if names else ():
        if name in names and "seed_rule" in grid:
            # Most sweeps have no such rule, and kdx status does not wait for the tables of the report.
            from kdx.report.seeds_until import unneeded_runs

            sweep = load_sweep(database, name)
            why = unneeded_runs(sweep)
            runs = [run for run in sweep.runs if run.id in why]
            found[name] = Spared(why, Counter(run.cell_id for run in runs), Counter(run.state for run in runs))
    return found

"""Which seeds of a sweep are needed where a rule decides that: what the sweep starts, and what its tables wait for.

The comparisons are those of the tables (`kdx.report.table`), so that they mean the same here as in print.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kdx.grid.plan import TableSpec
from kdx.grid.seeds import SeedRule, rule_of
from kdx.report.table.comparable import comparable_cells, traits_of
from kdx.report.table.comparisons import baseline_of, follow
from kdx.report.table.layout import lay_out
from kdx.store.records import ENDED, SweepRecord


@dataclass(frozen=True)
class Needed:
    """The seeds of a cell that are needed so far: those below `seeds`."""

    seeds: int
    why: str
    """Why no more are, such as `decided after 5 seeds`; for a cell that is open, what the next one waits for."""
    open: bool
    """Whether more may be needed once these have ended."""


def needed_seeds(sweep: SweepRecord) -> dict[str, Needed]:
    """Cell id → the seeds that its rule needs; empty where there is no rule.

    They depend on the runs that have ended alone, not on the order in which these ended.
    """
    rule = rule_of(sweep.grid)
    if rule is None:
        return {}
    uncompared = {cell.id: Needed(rule.min, "no table compares it with a baseline", False) for cell in sweep.cells}
    compared: dict[str, Needed] = {}
    for cell_id, needed in _followed(sweep, rule):
        before = compared.get(cell_id)
        if before is None or (needed.seeds, needed.open) > (before.seeds, before.open):
            compared[cell_id] = needed
    return uncompared | compared


def without_unneeded(sweep: SweepRecord) -> SweepRecord:
    """The sweep without runs that its rule does not need and that have not ended."""
    if sweep.joins:
        parts = tuple(map(without_unneeded, sweep.joins))
        kept = {run.id for part in parts for run in part.runs}
        return replace(sweep, runs=tuple(run for run in sweep.runs if run.id in kept), joins=parts)
    needed = needed_seeds(sweep)
    if not needed:
        return sweep
    return replace(
        sweep,
        runs=tuple(run for run in sweep.runs if run.state in ENDED or run.seed < needed[run.cell_id].seeds),
    )


def unneeded_runs(sweep: SweepRecord) -> dict[int, str]:
    """Run id → why its rule will not need it, for runs that have not ended."""
    needed = needed_seeds(sweep)
    return {
        run.id: of_cell.why
        for run in sweep.runs
        if run.state not in ENDED
        and (of_cell := needed.get(run.cell_id))
        and run.seed >= of_cell.seeds
        and not of_cell.open
    }


def _followed(sweep: SweepRecord, rule: SeedRule) -> Iterator[tuple[str, Needed]]:
    """What each comparison with a baseline needs of both cells."""
    tables = [TableSpec.model_validate(table) for table in sweep.grid.get("tables") or ()]
    tables = [table for table in tables if table.baseline]
    for table, layout in zip(tables, lay_out(sweep, tables), strict=True):
        # Evaluations are made of runs that have ended, so no seed waits for them.
        if layout.evaluations:
            continue
        comparable = comparable_cells(layout, traits_of(layout, sweep))
        baseline = baseline_of(layout, table)
        for at, course in follow(layout, table, comparable, rule).items():
            against = baseline(at)
            assert against is not None
            if course.open:
                seeds = max(course.n + 1, rule.min)
                needed = Needed(seeds, f"if the comparison is still open after {seeds} seeds", seeds < rule.max)
            else:
                what = "decided" if course.decided else "cannot be compared"
                needed = Needed(course.n, f"{what} after {course.n} seeds", False)
            yield layout.places[at].id, needed
            yield layout.places[against].id, needed

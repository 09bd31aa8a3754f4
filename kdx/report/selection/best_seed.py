"""Selects the run that stands for a seed, and the seed that stands for a cell, for tables, exports and clean-ups.

The paper's protocol: of a cell's seeds, the one with the best validation score [Tsai et al. 2019, Sec. 3]. The view
`runs` of the database says the same in SQL, and a test holds the two to each other.
"""

from collections.abc import Iterable
from math import isnan

from kdx.store.records import FINAL, RunRecord, RunState, SweepRecord
from kdx.vocabulary import Direction


def standing_runs(runs: Iterable[RunRecord]) -> list[RunRecord]:
    """The run that stands for each seed, from the lowest seed: its newest final generation, or else the newest.

    A run that somebody excluded from reports stands for its seed only where every generation is excluded.

    Args:
        runs: all runs of one cell, in any state and generation.
    """

    def rank(run: RunRecord) -> tuple[bool, bool, int]:
        valid = run.invalidated is None
        return valid and run.state in FINAL, valid, run.generation

    ordered = sorted(runs, key=rank)
    by_seed = {run.seed: run for run in ordered}
    return [by_seed[seed] for seed in sorted(by_seed)]


def best_seed(runs: Iterable[RunRecord], direction: Direction) -> RunRecord | None:
    """The completed run with the best validation score; of equals, the one with the lowest seed.

    Test scores are never used. A run cannot win without a validation score, with a score of NaN, or if it is excluded
    from reports.

    Args:
        runs: the runs that stand for the seeds of one cell.
        direction: the better direction of the validation score.

    Returns:
        The run, or None when no run can be selected.
    """
    sign = 1 if direction is Direction.MIN else -1
    scored = [
        (sign * run.valid_score, run.seed, -run.generation, run)
        for run in runs
        if run.state is RunState.COMPLETED
        and run.invalidated is None
        and run.valid_score is not None
        and not isnan(run.valid_score)
    ]
    return min(scored, key=lambda entry: entry[:3])[-1] if scored else None


def by_cell(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Cell id → its runs."""
    cells: dict[str, list[RunRecord]] = {}
    for run in runs:
        cells.setdefault(run.cell_id, []).append(run)
    return cells


def selected_runs(sweep: SweepRecord) -> dict[str, RunRecord]:
    """Cell id → the run that stands for the cell in tables; cells without such a run are left out."""
    runs = by_cell(sweep.runs)
    best = {
        cell.id: best_seed(standing_runs(runs.get(cell.id, ())), cell.spec.selection_direction) for cell in sweep.cells
    }
    return {cell: run for cell, run in best.items() if run}

"""The paper's protocol: of a cell's seeds, the one with the best validation score [Tsai et al. 2019, Sec. 3]."""

from collections.abc import Iterable
from math import isnan

from kdx.axes import Direction
from kdx.store.records import RunRecord, RunState


def best_seed(runs: Iterable[RunRecord], direction: Direction) -> RunRecord | None:
    """The completed run with the best validation score; of equals, the one with the lowest seed.

    Test scores are never looked at. A run without a validation score, or whose score is NaN, cannot win.

    Args:
        runs: the runs of one cell, in any state.
        direction: the good end of the validation score.

    Returns:
        None when no run can be chosen.
    """
    sign = 1 if direction is Direction.MIN else -1
    scored = [
        (sign * run.valid_score, run.seed, -run.generation, run)
        for run in runs
        if run.state is RunState.COMPLETED and run.valid_score is not None and not isnan(run.valid_score)
    ]
    return min(scored, key=lambda entry: entry[:3])[-1] if scored else None

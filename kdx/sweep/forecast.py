"""How long a sweep will still take, from how long finished runs of the same cells took."""

from collections.abc import Collection

from kdx.store.status import CellTime, WorkRecord


def seconds_left(cells: Collection[CellTime], working: Collection[WorkRecord]) -> float | None:
    """Wall time until the last run of a sweep ends, if as many processes go on working at it as now.

    Where none works, it is the time that one would take. A run at work is as far as its time says; one that takes
    longer than those before it counts as done.

    Args:
        cells: the cells that have runs to be done, all of one sweep.
        working: the runs of the sweep at which somebody works.

    Returns:
        None where no run of the sweep was completed yet.
    """
    total = 0.0
    mean = {cell.cell_id: cell.seconds for cell in cells}
    for cell in cells:
        if cell.seconds is None:
            return None
        total += cell.left * cell.seconds
    total -= sum(min(run.running, mean.get(run.cell_id) or 0.0) for run in working)
    return total / max(len(working), 1)

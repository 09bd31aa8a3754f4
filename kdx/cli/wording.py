"""How a run is called on the terminal."""

from kdx.grid.plan import PlannedRun
from kdx.report.inert import inert


def run_name(run: PlannedRun) -> str:
    """The first digits of its cell, the choices on each axis, and the seed, on one line."""
    choices = " · ".join(run.cell.labels.values()) or run.cell.spec.task.value
    return inert(f"{run.cell.id[:8]} {choices} · seed {run.seed}")

"""How a run is called on the terminal."""

from kdx.cli.console import inert
from kdx.grid.plan import PlannedRun


def run_name(run: PlannedRun) -> str:
    """The first digits of its cell, the choices on each axis, and the seed."""
    choices = " · ".join(run.cell.labels.values()) or run.cell.spec.task.value
    return inert(f"{run.cell.id[:8]} {choices} · seed {run.seed}")

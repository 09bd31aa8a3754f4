"""Names of runs and sizes of files on the terminal."""

from kdx.grid.plan import PlannedRun
from kdx.sanitize import sanitize


def run_name(run: PlannedRun) -> str:
    """The name of a run in one line: the first digits of its cell, the choice on each axis, and the seed."""
    choices = " · ".join(run.cell.labels.values()) or run.cell.spec.task
    return sanitize(f"{run.cell.id[:8]} {choices} · seed {run.seed}")


def size(count: int) -> str:
    """A number of bytes in a suitable unit."""
    number, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:.0f} {units[0]}" if units[0] == "bytes" else f"{number:.1f} {units[0]}"

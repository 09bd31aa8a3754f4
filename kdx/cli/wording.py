"""Names of runs, what a plan leaves out, and sizes of files on the terminal."""

from collections.abc import Iterator

from kdx.grid.plan import Plan, PlannedCell, PlannedRun
from kdx.sanitize import sanitize

_MOST_NAMED = 4
"""Cells that a message names; of more it gives the number."""


def run_name(run: PlannedRun) -> str:
    """The name of a run in one line: the first digits of its cell, the choice on each axis, and the seed."""
    return sanitize(f"{run.cell.id[:8]} {_choices(run.cell)} · seed {run.seed}")


def cell_name(cell: PlannedCell) -> str:
    """The name of a cell in one line: the first digits of its id, and the choice on each axis."""
    return sanitize(f"{cell.id[:8]} {_choices(cell)}")


def impossible_evaluations(plan: Plan) -> Iterator[str]:
    """A line for each evaluation that some cells cannot have, and for each reason, with these cells."""
    cells = {cell.id: cell for cell in reversed(plan.cells)}
    found: dict[tuple[str, str], list[PlannedCell]] = {}
    for cell in reversed(cells.values()):
        for asked, reason in plan.impossible_evaluations(cell.id):
            found.setdefault((str(asked), reason), []).append(cell)
    for (asked_of, reason), its in found.items():
        count = f"{len(its)} of {len(cells)} cells"
        names = f" ({', '.join(map(_choices, its))})" if len(its) <= _MOST_NAMED else ""
        yield sanitize(f"evaluation {asked_of} cannot be made of {count}{names}: {reason}")


def _choices(cell: PlannedCell) -> str:
    return " · ".join(cell.labels.values()) or cell.spec.task


def size(count: int) -> str:
    """A number of bytes in a suitable unit."""
    number, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:.0f} {units[0]}" if units[0] == "bytes" else f"{number:.1f} {units[0]}"

"""Tries the parts of one's own that a plan uses before any run starts: a fault is one message, not many failed runs."""

from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.own_parts.apart import ask_apart
from kdx.own_parts.part import OwnPart
from kdx.own_parts.registry import parts_of

WITHIN = 20  # seconds, for each cell that is tried
IMPORTING = 120  # seconds, for torch


def own_parts(plan: Plan) -> tuple[OwnPart, ...]:
    """The parts that cells of the plan use and that are not of kdx."""
    return parts_of({word: sha256 for cell in plan.cells for word, sha256 in cell.spec.parts.items()})


def try_parts(plan: Plan, within: int = WITHIN) -> None:
    """Imports each part, and computes an attention or an example with it on a few tokens, in another process.

    Args:
        within: seconds for each set of parts, after which one counts as endless.

    Raises:
        KdxError: a part raises, does not end, or ends the process; at the line in its source where that is known.
    """
    parts = own_parts(plan)
    if not parts:
        return
    # One cell for each set of parts: other settings of a cell are no matter of its parts.
    cells = {tuple(cell.spec.parts): cell for cell in plan.cells if cell.spec.parts}
    specs = [cell.spec.text for cell in cells.values()]
    limit = IMPORTING + len(cells) * within
    try:
        ask_apart("kdx.training.trial", parts, {"cells": specs}, within=within, limit=limit)
    except KdxError as fault:
        hint = "; ".join(filter(None, [fault.hint, "nothing was started"]))
        raise KdxError(fault.problem, place=fault.place, allowed=fault.allowed, hint=hint) from None

"""Rehearses the custom components of a plan before any run starts: a fault is one message, not many failed runs."""

from collections.abc import Iterator
from contextlib import suppress

from pydantic import ValidationError

from kdx.components.apart import ask_apart
from kdx.components.registry import FAMILY_OF, components_of
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.grid.spec import CellSpec
from kdx.grid.tuning import Choice

WITHIN = 60  # seconds, for each cell that is tried
IMPORTING = 120  # seconds, for torch


def rehearse(plan: Plan, within: int = WITHIN) -> None:
    """Import each component, and compute an attention or an example with it on a few tokens, in a child process.

    Args:
        within: seconds for each cell that is tried, after which it counts as endless.

    Raises:
        KdxError: a component raises, does not end, ends the process, or makes a table wrong (`kdx.testing`); at the
            line in its source if that is known.
    """
    components = components_of(plan.components)
    if not components:
        return
    # One cell for each way to compute with the components: other settings are no matter of theirs.
    cells = {_way(spec): spec.text for spec in _cells(plan) if spec.components}
    limit = IMPORTING + len(cells) * within
    try:
        ask_apart("kdx.training.rehearsal", components, {"cells": [*cells.values()]}, within=within, limit=limit)
    except KdxError as fault:
        hint = "; ".join(filter(None, [fault.hint, "nothing was started"]))
        raise KdxError(fault.problem, place=fault.place, allowed=fault.allowed, hint=hint) from None


def _cells(plan: Plan) -> Iterator[CellSpec]:
    """Yield the cells of a plan and of its layers, and those with another component that a search may choose."""
    for cell in plan.cells:
        yield from cell.spec.parts
        if (search := cell.search) is None:
            continue
        for name, values in search.space.items():
            for value in values.values if isinstance(values, Choice) else ():
                with suppress(ValidationError):  # no cell with the template's other settings
                    yield from search.cell({name: value}).parts


def _way(spec: CellSpec) -> tuple[object, ...]:
    """Return all on which the way to compute with the components of a cell depends."""
    components = components_of(spec.components)
    definitions = [FAMILY_OF[component.axis].definition(component.word) for component in components]
    options = [name for definition in definitions for name in definition.option_names]
    values = ((spec.option(name), spec.data.option(name)) for name in options)
    return (*spec.components, spec.symmetry, spec.task, *values)

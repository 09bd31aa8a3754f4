"""Which cells of a grid run first, by its conditions under `first`.

The order is no part of a cell's identity: it decides when a run starts and nothing of what it computes.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from kdx.errors import KdxError
from kdx.grid.conditions import MOST_CONDITIONS, Combination, ConditionReader
from kdx.grid.plan import PlannedCell
from kdx.grid.settings import list_of
from kdx.grid.source import Node


def with_priorities(
    cells: Sequence[PlannedCell],
    node: Node | None,
    axes: Collection[str],
    settled: Collection[str],
    faults: list[KdxError],
) -> list[PlannedCell]:
    """The cells, each with the number of the first condition that it fulfils, or of the last one and one more.

    Args:
        node: what stands under `first`; None: nothing does.
        axes: those of the grid that have a name of their own.
        settled: factors that the command line sets in every cell.
    """
    before = len(faults)
    reader = ConditionReader(axes, faults)
    conditions = [reader.read(one) for one in list_of(node, faults, "first", most=MOST_CONDITIONS)]
    found = []
    for cell in cells:
        combination = Combination(cell.labels, cell.settings)
        # All of them are asked, so that each learns which words there are.
        held = [condition is not None and condition.holds(combination) for condition in conditions]
        found.append(replace(cell, priority=held.index(True) if any(held) else len(held)))
    if len(faults) == before:
        faults.extend(fault for condition in conditions if condition for fault in condition.faults(settled))
    return found

"""The places of a page to which its tables and figures link."""

from kdx.report.selection.cells import Cell
from kdx.report.table.layout import Layout


def cell_anchor(cell: Cell) -> str:
    """The place of a cell's runs."""
    return f"cell-{cell.id}"


def run_anchor(layout: Layout, cell: Cell, run: int) -> str:
    """The place of a run of a cell: a run has one of its own, and one for each of its evaluations."""
    evaluated = layout.evaluations.get(cell.id)
    return f"run-{run}-{evaluated.evaluation.id[:8]}" if evaluated else f"run-{run}"

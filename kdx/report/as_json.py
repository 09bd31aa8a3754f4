"""A table as plain values for programs, in full precision."""

from typing import Any

from kdx.report.tables import Cell, Table


def to_json(table: Table) -> dict[str, Any]:
    """The table with one entry for each cell; keys keep their names and meaning from version to version.

    Numbers may be NaN or infinite; whoever writes JSON has to replace them.
    """
    return {
        "name": table.name,
        "caption": table.caption,
        "rows": list(table.row_factors),
        "columns": list(table.column_factors),
        "notes": list(table.notes),
        "cells": [
            {
                "row": dict(zip(table.row_factors, row, strict=True)),
                "column": dict(zip(table.column_factors, column, strict=True)),
                **_values(cell),
            }
            for row, cells in zip(table.rows, table.body, strict=True)
            for column, cell in zip(table.columns, cells, strict=True)
            if cell
        ],
    }


def _values(cell: Cell) -> dict[str, Any]:
    summary = cell.summary
    return {
        "cell": cell.id,
        "state": cell.state.value,
        "metric": cell.metric.name if cell.metric == cell.selected_by else f"test/{cell.metric.name}",
        "direction": cell.metric.direction.value,
        "score": cell.score,
        "best": cell.best,
        "run": cell.run_id,
        "seed": cell.seed,
        "selected_by": cell.selected_by.name,
        "validation": cell.validation,
        "mean": summary.mean if summary else None,
        "sd": summary.sd if summary else None,
        "n": summary.n if summary else 0,
        "planned": cell.planned,
        "completed": cell.completed,
        "diverged": cell.diverged,
        "failed": cell.failed,
        "unfinished": cell.unfinished,
    }

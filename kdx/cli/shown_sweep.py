"""A sweep: its cells with their best runs, and what varies among them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kdx.cli.choosing import chosen
from kdx.cli.options import in_database
from kdx.cli.shown import (
    Shown,
    default_metrics,
    fact_lines,
    four_digits,
    named,
    notes_in_words,
    notes_to_json,
    row_of,
    run_to_json,
    table_lines,
    time_in_words,
)
from kdx.grid.cell_selector import word
from kdx.report.selection.best_seed import best_seed
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import sanitize, sanitize_lines
from kdx.shell import kdx_command
from kdx.store.database import Database
from kdx.store.details import PlannedCellDetails, sweep_details
from kdx.store.records import RunRecord, RunState
from kdx.store.remarks import remarks
from kdx.vocabulary import Direction

MOST_CELLS = 40
"""Cells of a sweep that are listed; kdx status lists the runs of all."""
MOST_VALUES = 8
"""Values of a varying field that are listed."""


class ShownSweep(Shown):
    def __init__(self, database: Database, sweep_id: int, conditions: Sequence[str]) -> None:

        self.details = details = sweep_details(database, sweep_id)
        self.remarks = remarks(database)
        rows = chosen([row_of(run, cell.labels) for cell in details.cells for run in cell.runs], conditions)
        self.runs: dict[str, list[RunRecord]] = {}
        for row in rows:
            self.runs.setdefault(row["cell"], []).append(row["record"])
        self.cells = [cell for cell in details.cells if cell.id in self.runs or not conditions]
        self.title = f"sweep {details.name}"
        self.metrics = default_metrics([cell.spec for cell in self.cells])
        self.best = {cell.id: self._best(cell) for cell in self.cells}
        self.drawn = [
            (f"run {run.id} · {named(cell.labels, 'the cell')} · seed {run.seed}", run)
            for cell in self.cells
            if (run := self.best[cell.id] or self._begun(cell))
        ]

    def _begun(self, cell: PlannedCellDetails) -> RunRecord | None:
        return next((run for run in self.runs.get(cell.id, ()) if run.progress_step), None)

    def _best(self, cell: PlannedCellDetails) -> RunRecord | None:

        return best_seed(self.runs.get(cell.id, ()), Direction(cell.spec["select"]["direction"]))

    def plain(self) -> dict[str, Any]:
        details = self.details
        return {
            "sweep": details.name,
            "created": details.created,
            "planned": details.updated,
            "command": details.grid.get("command") or None,
            "grid": details.grid.get("file") or None,
            "description": details.grid.get("description", ""),
            "seeds": details.grid.get("seeds", []),
            "tags": list(self.remarks.tags_of_sweeps.get(details.id, ())),
            "notes": notes_to_json(self.remarks.of_sweeps.get(details.id, ())),
            "tables": [one.get("name", details.name) for one in details.grid.get("tables", [])],
            "evaluations": [one["name"] for one in details.grid.get("evaluations", [])],
            "varies": {field: list(values) for field, values in details.varies.items()},
            "cells": [
                {
                    "cell": cell.id,
                    "choices": dict(cell.labels),
                    "metric": cell.spec["select"]["metric"],
                    "selected": best.id if (best := self.best[cell.id]) else None,
                    "runs": [run_to_json(one, self.remarks) for one in self.runs.get(cell.id, ())],
                }
                for cell in self.cells
            ],
        }

    def lines(self, db: str) -> Iterator[str]:
        details, grid = self.details, self.details.grid
        yield sanitize(self.title)
        states = Counter(run.state.value for its in self.runs.values() for run in its)
        seeds = grid.get("seeds", [])
        yield from fact_lines(
            {
                "about": grid.get("description", ""),
                "planned": f"{time_in_words(details.updated)} UTC"
                + (f", by: {grid['command']}" if grid.get("command") else ""),
                "grid": grid.get("file", ""),
                "cells": f"{len(self.cells):,} with {len(seeds):,} seed{'' if len(seeds) == 1 else 's'} each",
                "runs": ", ".join(f"{count:,} {state}" for state, count in states.items()) or "none",
                "out of tables": self._out_of_tables(),
                "tags": " ".join(self.remarks.tags_of_sweeps.get(details.id, ())),
                "notes": notes_in_words(self.remarks.of_sweeps.get(details.id, ())),
                "tables": ", ".join(one.get("name", details.name) for one in grid.get("tables", [])),
                "evaluations": ", ".join(one["name"] for one in grid.get("evaluations", [])),
            }
        )
        yield ""
        axes = list(dict.fromkeys(axis for cell in self.cells for axis in cell.labels))
        head = ("cell", *axes, "completed", "run", "seed", "valid", "test")
        yield from table_lines(head, (self._line(cell, axes) for cell in self.cells[:MOST_CELLS]))
        if len(self.cells) > MOST_CELLS:
            more = kdx_command("status", details.name, options=in_database(db))
            yield f"  … and {len(self.cells) - MOST_CELLS:,} more cells; {more} lists all runs"
        if details.varies:
            yield ""
            yield "varies"
            yield from fact_lines({field: _values(values) for field, values in details.varies.items()})
        if details.cells:
            yield ""
            yield "the same in all cells"
            same = _without(details.cells[0].spec, details.varies)
            yield from (f"  {sanitize_lines(line)}" for line in as_yaml(same).splitlines())

    def _out_of_tables(self) -> str:
        """The runs that somebody took out of tables, by the reason."""
        found: dict[str, list[int]] = {}
        for run in (run for its in self.runs.values() for run in its):
            if run.invalidated is not None:
                found.setdefault(run.invalidated, []).append(run.id)
        return "; ".join(f"run{'' if len(ids) == 1 else 's'} {_values(ids)} ({why})" for why, ids in found.items())

    def _line(self, cell: PlannedCellDetails, axes: Sequence[str]) -> tuple[Any, ...]:

        its = self.runs.get(cell.id, ())
        done = sum(run.state is RunState.COMPLETED for run in its)
        best = self.best[cell.id]
        choices = (cell.labels.get(axis, "–") for axis in axes)
        scores = (
            (best.id, str(best.seed), four_digits(best.valid_score), four_digits(best.test_score))
            if best
            else (None,) * 4
        )
        return cell.id[:8], *choices, f"{done} of {len(its)}", *scores


def _without(cell: Mapping[str, Any], fields: Iterable[str], prefix: str = "") -> dict[str, Any]:
    """A cell less these dotted fields, and less what is empty then."""
    found = {}
    for key, its in cell.items():
        if isinstance(its, Mapping):
            if inner := _without(its, fields, f"{prefix}{key}."):
                found[key] = inner
        elif f"{prefix}{key}" not in fields:
            found[key] = its
    return found


def _values(values: Sequence[Any]) -> str:

    words = [word("", value) for value in values]
    if len(words) > MOST_VALUES:
        words[MOST_VALUES:] = [f"… ({len(words):,} values)"]
    return ", ".join(words)

"""What `kdx show SWEEP --plans` shows: every plan that a sweep has had, how it changed, and its grid as written."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from kdx.cli.amounts import count_of
from kdx.grid.difference import Contents, Difference, difference
from kdx.sanitize import sanitize, spelled_out
from kdx.store import plans
from kdx.store.database import Database
from kdx.store.recorded_grid import whole_cell
from kdx.store.records import PlanRecord


class PlanHistory:
    """The plans of a sweep, the first one first, each with its difference from the one before."""

    def __init__(self, database: Database, sweep_id: int) -> None:
        with database.read():
            self.plans: Sequence[PlanRecord] = plans.history(database, sweep_id)
            texts = plans.cells_of(database, sweep_id)
        for cell, text in texts.items():
            whole_cell(cell, text)
        contents = [
            Contents(
                {cell: texts[cell] for cell in one.cells},
                tuple(one.grid.get("seeds", ())),
                one.grid.get("file", ""),
            )
            for one in self.plans
        ]
        self.changes: list[Difference | None] = [None]
        self.changes += [difference(before, now) for before, now in pairwise(contents)]

    def lines(self) -> Iterator[str]:
        """Of each plan a headline, what changed, and its files."""
        for number, (one, change) in enumerate(zip(self.plans, self.changes, strict=True), 1):
            if number > 1:
                yield ""
            when = datetime.fromtimestamp(one.made, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            seeds = len(one.grid.get("seeds", ()))
            yield f"plan {number}, {when}: {count_of(len(one.cells), 'cell')} × {count_of(seeds, 'seed')}"
            if command := one.grid.get("command"):
                yield f"  by {sanitize(command)}"
            if change is not None:
                yield f"  changed: {sanitize(_changed(change))}"
            if not one.sources:
                yield "  its grid was not recorded"
            for file, text in one.sources.items():
                yield f"  {sanitize(file)}:"
                for line in text.splitlines():
                    yield ("    " + spelled_out(line, keep="\t")).rstrip()

    def plain(self) -> list[dict[str, Any]]:
        """For `--json`."""
        return [
            {
                "plan": number,
                "made": one.made,
                "command": one.grid.get("command", ""),
                "seeds": one.grid.get("seeds", []),
                "cells": list(one.cells),
                "changes": None
                if change is None
                else [{"field": each.field, "gone": each.gone, "new": each.new} for each in change.changes],
                "runs_gone": 0 if change is None else change.runs_gone,
                "sources": dict(one.sources),
            }
            for number, (one, change) in enumerate(zip(self.plans, self.changes, strict=True), 1)
        ]


def _changed(change: Difference) -> str:
    if change.gone or change.new or change.seeds_gone or change.seeds_new:
        return str(change)
    return "no run: only its words, tables or evaluations"

"""The runs of a page: the result of each, and what it was computed from."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from markupsafe import escape

from kdx.report.selection.cells import Cell, Seed
from kdx.report.sheets.scores import cell_anchor, run_anchor
from kdx.report.table.layout import Layout
from kdx.report.wording import rounded
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import sanitize_lines
from kdx.store.records import Provenance, RunRecord


def runs_of_cell(
    layout: Layout, cell: Cell, title: str, runs: Mapping[int, RunRecord], provenance: Mapping[int, Provenance]
) -> dict[str, Any]:
    """The runs of a cell as the template takes them, with their settings and origins."""
    states = Counter(seed.outcome for seed in cell.seeds)
    # Runs share their origins; each origin is shown once.
    origins = {id(origin): origin for seed in cell.seeds if (origin := provenance.get(seed.run_id))}.values()
    facts: dict[str, dict[Any, None]] = {"cell": {cell.id: None}}
    for origin in origins:
        environment = ", ".join(f"{name} {value}" for name, value in (origin.environment or {}).items())
        known = {"data": origin.data, "code": origin.code, "environment": environment}
        for name, text in {**known, **(origin.definitions or {}), **(origin.facts or {})}.items():
            if text:
                facts.setdefault(name, {})[str(text)] = None
    return {
        "id": cell_anchor(cell),
        "title": title,
        "states": ", ".join(f"{count} {state}" for state, count in states.items()),
        "headers": [
            *("seed", "run", "state", cell.selected_by, cell.metric.recorded, "tested step", "steps", "seconds"),
            *("generation", "attempts"),
        ],
        "runs": [
            {"id": run_anchor(layout, cell, seed.run_id), "words": _run(cell, seed, runs[seed.run_id])}
            for seed in cell.seeds
        ],
        "errors": [
            *(f"Run {run.id}: {run.error}" for seed in cell.seeds if (run := runs[seed.run_id]).error),
            *(f"Run {seed.run_id} is excluded: {seed.invalidated}" for seed in cell.seeds if seed.invalidated),
        ],
        "facts": list(facts.items()),
        "spec": escape(sanitize_lines(as_yaml(layout.records[cell.id].spec.plain).rstrip())),
    }


def _run(cell: Cell, seed: Seed, run: RunRecord) -> list[str]:
    def number(value: float | None, metric: str) -> str:
        return "–" if value is None else rounded(value, metric)

    return [
        f"{seed.seed}{' (selected)' if run.id == cell.run_id else ''}",
        str(run.id),
        seed.outcome,
        number(seed.validation, cell.selected_by.name),
        number(seed.score, cell.metric.name),
        "–" if run.valid_step is None else str(run.valid_step),
        str(run.progress_step),
        "–" if run.seconds is None else f"{run.seconds:.0f}",
        str(run.generation),
        str(run.attempt),
    ]

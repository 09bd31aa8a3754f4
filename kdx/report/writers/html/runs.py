"""The runs of a page: the result of each, and what it was computed from."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from kdx.report.selection.cells import Cell, Seed
from kdx.report.sheets.scores import cell_anchor, run_anchor
from kdx.report.table.layout import Layout
from kdx.report.wording import rounded
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import sanitize_lines
from kdx.store.records import Provenance, RunRecord


def runs_of_cell(
    layout: Layout,
    cell: Cell,
    title: str,
    runs: Mapping[int, RunRecord],
    provenance: Mapping[int, Provenance],
    environments: "Environments",
    spec: Mapping[str, Any],
) -> dict[str, Any]:
    states = Counter(seed.outcome for seed in cell.seeds)
    # Runs share their origins; each origin is shown once.
    origins = {id(one): one for seed in cell.seeds if (one := provenance.get(seed.run_id))}.values()
    facts: dict[str, dict[Any, None]] = {"cell": {cell.id: None}}
    for one in origins:
        facts.setdefault("data", {})[one.data] = None
        facts.setdefault("code", {})[one.code] = None
        facts.setdefault("environment", {})[one.environment and environments.link(one.environment)] = None
        for name, text in {**(one.definitions or {}), **(one.facts or {})}.items():
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
            {"id": run_anchor(layout, cell, one.run_id), "words": _run(cell, one, runs[one.run_id])}
            for one in cell.seeds
        ],
        "errors": [
            *(f"Run {run.id}: {run.error}" for one in cell.seeds if (run := runs[one.run_id]).error),
            *(f"Run {one.run_id} is out of tables: {one.invalidated}" for one in cell.seeds if one.invalidated),
        ],
        "facts": [(name, known) for name, those in facts.items() if (known := [*filter(None, those)])],
        "spec": escape(sanitize_lines(as_yaml(spec).rstrip())),
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


class Environments:
    """The environments in which runs were computed; each is shown once and linked from the cells."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def link(self, environment: Mapping[str, Any]) -> Markup:
        """A link to the environment."""
        number = self._numbers.setdefault(as_yaml(environment).rstrip(), len(self._numbers) + 1)
        return Markup('<a href="#environment-{0}">environment {0}</a>').format(number)

    def linked(self) -> list[dict[str, Any]]:
        """The environments that a cell links to."""
        return [
            {
                "id": f"environment-{number}",
                "title": f"Environment {number}",
                "text": escape(sanitize_lines(text)),
            }
            for text, number in self._numbers.items()
        ]

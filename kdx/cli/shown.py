"""What `kdx show` says of runs, cells and sweeps in the same words: facts, settings, runs and notes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kdx.grid.resolved_spec import ResolvedSpec
from kdx.report.writers.rows import to_text
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import sanitize, sanitize_lines
from kdx.store.details import CellDetails
from kdx.store.records import RunRecord
from kdx.store.remarks import NoteRecord, Remarks

LOSS = "train/loss"


class Shown:
    """What is shown: a run, a cell, or a sweep."""

    title: str
    drawn: Sequence[tuple[str, RunRecord]]
    """The runs whose curves are drawn, each with the name that the legend gives it."""
    metrics: Sequence[str]
    """The metrics that are drawn if nothing else is asked for."""

    def plain(self) -> dict[str, Any]:
        """For `--json`; docs/reference/json.md has the layout."""
        raise NotImplementedError

    def lines(self, db: str) -> Iterator[str]:
        raise NotImplementedError


def named(labels: Mapping[str, str], task: str) -> str:
    return " · ".join(labels.values()) or task


def row_of(record: RunRecord, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "run": record.id,
        "cell": record.cell_id,
        "seed": record.seed,
        "state": record.state.value,
        "choices": labels,
        "record": record,
    }


def run_to_json(record: RunRecord, written: Remarks) -> dict[str, Any]:
    return {
        "run": record.id,
        "cell": record.cell_id,
        "seed": record.seed,
        "generation": record.generation,
        "state": record.state.value,
        "step": record.progress_step,
        "attempt": record.attempt,
        "valid_score": record.valid_score,
        "valid_step": record.valid_step,
        "test_score": record.test_score,
        "seconds": record.seconds,
        "error": record.error,
        "undertrained": record.undertrained,
        "invalidated": record.invalidated,
        "tags": list(written.tags_of_runs.get(record.id, ())),
        "notes": notes_to_json(written.of_runs.get(record.id, ())),
    }


def planners_to_json(cell: CellDetails) -> list[dict[str, Any]]:
    return [{"sweep": one.sweep, "choices": dict(one.labels)} for one in cell.planners]


def notes_to_json(notes: Sequence[NoteRecord]) -> list[dict[str, Any]]:
    return [{"made": one.made, "text": one.text} for one in notes]


def notes_in_words(notes: Sequence[NoteRecord]) -> str:
    return "; ".join(f"{' '.join(one.text.split())} ({time_in_words(one.made)} UTC)" for one in notes)


def settings_lines(cell: ResolvedSpec, varies: Sequence[str]) -> Iterator[str]:
    """Write the cell as YAML; what varies in its sweep comes first."""
    there = [field for field in varies if cell.value(field) is not None]
    yield f"settings, of which vary: {', '.join(there)}" if there else "settings"
    yield from (f"  {sanitize_lines(line)}" for line in as_yaml(_with_first(there, cell.plain)).splitlines())


def _with_first(fields: Sequence[str], cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell with these dotted fields, which it has, before all others, at each level."""
    ordered = {}
    for key in dict.fromkeys((*(field.partition(".")[0] for field in fields), *cell)):
        inner = [field.removeprefix(f"{key}.") for field in fields if field.startswith(f"{key}.")]
        ordered[key] = _with_first(inner, cell[key]) if isinstance(cell[key], Mapping) else cell[key]
    return ordered


def fact_lines(facts: Mapping[str, str]) -> Iterator[str]:
    """The facts that are there, one a line, under one another."""
    there = {name: sanitize(text) for name, text in facts.items() if text}
    wide = max(map(len, map(sanitize, there)), default=0)
    yield from (f"  {sanitize(name):{wide}}  {text}" for name, text in there.items())


def table_lines(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:

    yield from (f"  {line}" for line in to_text(head, list(rows)))


def four_digits(value: float | None) -> float | None:
    """Four digits of a score."""
    return None if value is None else float(f"{value:.4g}")


def time_in_words(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def default_metrics(specs: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys([*(str(spec["select"]["metric"]) for spec in specs), LOSS]))

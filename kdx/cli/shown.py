"""What `kdx show` shows of runs, cells and sweeps in the same way: runs, notes, settings and facts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.cli.wording import choices_of
from kdx.report.writers.rows import to_text
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import sanitize, sanitize_lines
from kdx.store.details import CellDetails
from kdx.store.records import RunRecord

LOSS = "train/loss"


@dataclass(frozen=True)
class Shown:
    """A run, a cell or a sweep, ready to be written."""

    title: str
    record: Any
    """For `--json`; docs/reference/json.md has the keys."""
    lines: Callable[[], Iterator[str]]
    drawn: Sequence[tuple[str, RunRecord]]
    """The runs whose curves are drawn, each with the name that the legend gives it."""
    metrics: Sequence[str]
    """The metrics that are drawn by default."""
    searches: Sequence[Any] = ()
    """The searches that tried a cell."""


def planners(cell: CellDetails) -> list[dict[str, Any]]:
    """Return the sweeps that plan a cell, with its choices in each."""
    return [{"sweep": sweep, "choices": labels} for sweep, labels in cell.planners.items()]


def cell_title(cell: CellDetails) -> str:
    return choices_of(cell.labels, cell.spec.task)


def sweeps_in_words(cell: CellDetails) -> str:
    return ", ".join(cell.planners) or "none plans it any more"


def test_metric(selection_metric: str) -> str:
    """Return the metric of the test that is reported beside a selection metric."""
    return selection_metric.replace("valid/", "test/", 1)


def settings_lines(settings: Mapping[str, Any], varies: Sequence[str]) -> Iterator[str]:
    """Write the settings of a cell as YAML; what varies in its sweep comes first."""
    there = [field for field in varies if _has(settings, field)]
    yield f"settings, of which vary: {', '.join(there)}" if there else "settings"
    yield from (f"  {sanitize_lines(line)}" for line in as_yaml(_with_first(there, settings)).splitlines())


def _has(settings: Any, field: str) -> bool:
    for key in field.split("."):
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings is not None


def _with_first(fields: Sequence[str], cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell with these dotted fields, which it has, before all others, at each level."""
    ordered = {}
    for key in dict.fromkeys((*(field.partition(".")[0] for field in fields), *cell)):
        inner = [field.removeprefix(f"{key}.") for field in fields if field.startswith(f"{key}.")]
        ordered[key] = _with_first(inner, cell[key]) if isinstance(cell[key], Mapping) else cell[key]
    return ordered


def fact_lines(facts: Mapping[str, str]) -> Iterator[str]:
    """Write the facts that are there, one a line, aligned."""
    there = {sanitize(name): sanitize(text) for name, text in facts.items() if text}
    width = max(map(len, there), default=0)
    yield from (f"  {name:{width}}  {text}" for name, text in there.items())


def table_lines(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield from (f"  {line}" for line in to_text(head, list(rows)))


def default_metrics(specs: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys([*(str(spec["select"]["metric"]) for spec in specs), LOSS]))

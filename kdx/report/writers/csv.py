"""Tables as CSV in long form, with one row for each cell, for statistics programs.

Columns keep their names and meaning from version to version; most are keys of JSON (`kdx.report.writers.json`). Numbers
have full precision; a missing value is an empty field. Names are sanitized, quoted and on one line each.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from kdx.grid.table_layout import SWEEP
from kdx.report.made_by import MadeBy
from kdx.report.table.comparisons import Difference
from kdx.report.tables import Table
from kdx.report.wording import factor_column, setting
from kdx.report.writers.json import cell_to_json, difference_to_json
from kdx.report.writers.rows import to_csv as lines
from kdx.sanitize import sanitize

_COLUMNS = (
    *("metric", "direction", "shown", "state", "score", "best", "near_best", "not_compared_with_best", "seed", "run"),
    *("selected_by", "validation", "n", "mean", "sd", "mean_low", "mean_high", "documents", "expected_best"),
    *("expected_best_of", "planned", "completed", "diverged", "pruned", "invalidated", "undertrained", "failed"),
    *("out_of_memory", "unfinished"),
    *("against", "better_by", "better_by_low", "better_by_high", "better_by_unit", "p", "p_corrected", "p_correction"),
    *("effect", "margin", "p_equivalent", "sentences_better_by", "sentences_p"),
    *("cell", "published", "published_state"),
)
"""The columns of a cell and of its difference from another, in their order."""


def write_tables(tables: Sequence[Table], made_by: MadeBy) -> Iterator[str]:
    """Write tables; see `kdx.report.writers`; they have all statistics in any case."""
    yield to_csv(tables)


def to_csv(tables: Sequence[Table]) -> str:
    """Every cell of every table, with the factors of all tables and the axes of their cells as columns.

    A factor with the name of another column, such as `seed`, has `factor ` before its name. A parameter that a search
    tuned has a column such as `tuned training.learning_rate`, with what was found for the cell.
    """
    rows = [row for table in tables for row in _rows(table)]
    factors = dict.fromkeys(name for words, _ in rows for name in words)
    columns = [*(factors | dict.fromkeys(name for _, values in rows for name in values))]
    fields = ([_field({**words, **values}.get(name)) for name in columns] for words, values in rows)
    return "".join(f"{line}\n" for line in lines([*map(sanitize, columns)], fields)) if rows else ""


def _rows(table: Table) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """The name of the table and the factors of each cell, and its values."""
    layout, draws = table.layout, max(0, table.layout.fewest - 1)
    differences = {difference.at: _difference(table, difference) for difference in table.differences}
    published = {pair.at: pair for pair in table.published.pairs} if table.published else {}
    tuned = dict.fromkeys(name for searched in table.searches.values() for name in searched.search.space)
    for at in layout.by_column:
        cell = layout.places[at]
        record, plain = layout.records[cell.id], cell_to_json(cell, table.marks.get(at))
        values = {
            **differences.get(at, {}),
            **plain,
            **_ends("mean", plain["interval"]),
            "shown": layout.shown.value,
            "documents": cell.documents.number if cell.documents else None,
            "expected_best": cell.expected(draws),
            "expected_best_of": draws,
        }
        if at in published:
            value = published[at].published
            values |= {"published": value, "published_state": "diverged" if value is None else "value"}
        settings = table.searches[at].winner.parameters if at in table.searches else {}
        sweeps = {SWEEP: ", ".join(record.sweeps)} if record.sweeps else {}
        words = {"task": record.spec.task, **record.labels, **sweeps, **layout.header(at)}
        own = ("table", *_COLUMNS)
        yield (
            {"table": layout.name, **{factor_column(factor, own): word for factor, word in words.items()}},
            {name: values.get(name) for name in _COLUMNS} | {f"tuned {name}": settings.get(name) for name in tuned},
        )


def _difference(table: Table, difference: Difference) -> dict[str, Any]:
    """The values of a cell's difference from another."""
    plain = difference_to_json(table, difference)
    resampled = plain["randomisation"] or {}
    against = setting(table.layout.header(difference.against))
    sentences = {"sentences_better_by": resampled.get("gain"), "sentences_p": resampled.get("p")}
    unit = None if plain["better_by"] is None else plain["scale"]
    better = {**_ends("better_by", plain["interval"]), "better_by_unit": unit}
    return {**plain, **better, **sentences, "against": against}


def _ends(name: str, interval: Sequence[float] | None) -> dict[str, float | None]:
    """The columns of the ends of an interval."""
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def _field(value: Any) -> Any:
    if isinstance(value, str):
        return sanitize(value)
    return int(value) if isinstance(value, bool) else value

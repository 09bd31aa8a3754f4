"""Where each cell of a grid stands in a table: which factors make rows and columns, and in which order.

Checked when the grid is read, before anything trains, and used again when the report is made. A factor is a field of
the resolved cell (`kernel`, `training.learning_rate`, `filter.decoder-self`) or an axis that is no field, such as
`approach`. A field is read from the resolved cell, not from the grid's wording, so what means the same stands in one
place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.axes import Task
from kdx.errors import KdxError, did_you_mean
from kdx.grid.plan import TableSpec
from kdx.grid.spec import TEST_METRICS
from kdx.grid.where import choice

Labelled = tuple[Mapping[str, str], Mapping[str, Any]]
"""A cell's labels, and its resolved spec as canonical JSON gives it back."""

NO_CHOICE = "–"
"""Header of a cell that lacks an axis which other cells have."""


@dataclass(frozen=True)
class Placing:
    """Headers in the order of the plan, factor by factor, and the cell at each place."""

    rows: tuple[tuple[str, ...], ...]
    """One word for each row factor."""
    columns: tuple[tuple[str, ...], ...]
    """One word for each column factor; a single empty header when the table names none."""
    at: Mapping[tuple[int, int], int]
    """(row, column) → index of the cell; a place that the plan leaves empty is absent."""


def place(cells: Sequence[Labelled], table: TableSpec) -> Placing:
    """Lay the cells out as `table` asks.

    Raises:
        KdxError: a factor, metric or baseline that no cell has, a word that leaves no cell, or two different cells in
            one place.
    """
    chosen = _chosen(cells, table)
    all_cells, cells = cells, [cells[index] for index in chosen]
    _check_metric(cells, table)
    row_keys, rows = _headers(cells, table.rows, table)
    column_keys, columns = _headers(cells, table.columns, table)
    row_index = {words: index for index, words in enumerate(rows)}
    column_index = {words: index for index, words in enumerate(columns)}
    _check_baseline(rows, columns, table)
    at: dict[tuple[int, int], int] = {}
    for index, row, column in zip(chosen, row_keys, column_keys, strict=True):
        first = at.setdefault((row_index[row], column_index[column]), index)
        if all_cells[first][1] != all_cells[index][1]:
            here = [cell for cell, *key in zip(cells, row_keys, column_keys, strict=True) if key == [row, column]]
            raise _collision(here, dict(zip((*table.rows, *table.columns), (*row, *column), strict=True)), table)
    return Placing(rows, columns, at)


def factor_value(labels: Mapping[str, str], spec: Mapping[str, Any], factor: str) -> str | None:
    """The cell's choice of `factor` in words; None when the cell has no such factor.

    Position schemes that act together are joined by `+`, other lists by `/`; an empty list is `none`.
    """
    word = choice(spec, factor)
    return labels.get(factor) if word is None else word


def _chosen(cells: Sequence[Labelled], table: TableSpec) -> list[int]:
    """Indices of the cells that the table is of."""
    chosen = list(range(len(cells)))
    for factor, word in table.where.items():
        words = {index: factor_value(*cells[index], factor) for index in chosen}
        if cells and all(found is None for found in words.values()):
            raise _unknown(factor, cells, table)
        chosen = [index for index in chosen if words[index] == word]
        if cells and not chosen:
            known = list(dict.fromkeys(found for found in words.values() if found is not None))
            problem = f"table `{table.name}`: no cell where {factor} = {word}"
            raise KdxError(problem, allowed=known, hint=did_you_mean(word, known))
    return chosen


def _headers(
    cells: Sequence[Labelled], factors: Sequence[str], table: TableSpec
) -> tuple[list[tuple[str, ...]], tuple[tuple[str, ...], ...]]:
    """The header of each cell, and the different ones, sorted by each factor's first appearance in the plan."""
    words = []
    for factor in factors:
        found = [factor_value(labels, spec, factor) for labels, spec in cells]
        if cells and all(word is None for word in found):
            raise _unknown(factor, cells, table)
        words.append([NO_CHOICE if word is None else word for word in found])
    ranks = [{word: rank for rank, word in enumerate(dict.fromkeys(column))} for column in words]
    keys: list[tuple[str, ...]] = list(zip(*words, strict=True)) if words else [() for _ in cells]
    headers = sorted(set(keys), key=lambda key: [rank[word] for rank, word in zip(ranks, key, strict=True)])
    return keys, tuple(headers)


def _check_metric(cells: Sequence[Labelled], table: TableSpec) -> None:
    known = list(dict.fromkeys(name for _, spec in cells for name in TEST_METRICS[Task(spec["task"])]))
    known += dict.fromkeys(spec["select"]["metric"] for _, spec in cells)
    named = {"metric": [table.metric] if table.metric is not None else [], "metric in margin": table.margin}
    for what, names in named.items():
        for name in names:
            if known and name not in known:
                raise KdxError(
                    f"table `{table.name}`: unknown {what} `{name}`",
                    allowed=known,
                    hint=did_you_mean(name.rpartition("/")[2], known),
                )


def _check_baseline(rows: Sequence[tuple[str, ...]], columns: Sequence[tuple[str, ...]], table: TableSpec) -> None:
    factors = (*table.rows, *table.columns)
    for factor, word in table.baseline.items():
        if factor not in factors:
            raise KdxError(
                f"table `{table.name}`: baseline `{factor}` is neither among its rows nor its columns",
                allowed=factors,
                hint=did_you_mean(factor, factors),
            )
        side, level = (rows, table.rows) if factor in table.rows else (columns, table.columns)
        known = list(dict.fromkeys(header[level.index(factor)] for header in side))
        if known and word not in known:
            raise KdxError(
                f"table `{table.name}`: no cell has the baseline's {factor} `{word}`",
                allowed=known,
                hint=did_you_mean(word, known),
            )


def _unknown(factor: str, cells: Sequence[Labelled], table: TableSpec) -> KdxError:
    axes = [axis for labels, _ in cells for axis in labels]
    fields = [path for _, spec in cells for path, _ in leaves(spec)]
    known = list(dict.fromkeys([*axes, *fields]))
    inside = [path for path in known if path.startswith(f"{factor}.")]
    if inside:
        return KdxError(f"table `{table.name}`: `{factor}` is a section, not a factor", allowed=inside)
    problem = f"table `{table.name}`: unknown factor `{factor}`"
    return KdxError(problem, allowed=known, hint=did_you_mean(factor, known))


def _collision(cells: Sequence[Labelled], where: Mapping[str, str], table: TableSpec) -> KdxError:
    place = ", ".join(f"{factor} = {word}" for factor, word in where.items())
    differ = _differing([[(axis, factor_value(*cell, axis)) for axis in cell[0]] for cell in cells], where)
    differ = differ or _differing([list(leaves(spec)) for _, spec in cells], where)
    return KdxError(
        f"table `{table.name}`: {len(cells)} cells fall into one place, {place}; they differ in {', '.join(differ)}",
        hint=f"add {', '.join(differ)} to rows or columns",
    )


def _differing(cells: Sequence[Sequence[tuple[str, Any]]], known: Mapping[str, str]) -> list[str]:
    values: dict[str, list[Any]] = {}
    for pairs in cells:
        for factor, value in pairs:
            values.setdefault(factor, []).append(value)
    return [
        factor
        for factor, found in values.items()
        if factor not in known and (len(found) < len(cells) or any(value != found[0] for value in found))
    ]


def leaves(spec: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of the resolved cell with its dotted path."""
    for key, value in spec.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value

"""Where each cell of a grid stands in a table: which factors make rows and columns, and in which order.

The layout is checked when the grid is read, before anything trains, and built again for the report. A factor is a
field of the resolved cell (`kernel`, `training.learning_rate`, `filter.decoder-self`) or an axis that is no field, such
as `approach`. A field is read from the resolved cell, not from the grid's wording, so equal choices share one place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from kdx.errors import KdxError, shortened
from kdx.grid.cell_selector import same_word
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.plan import TableSpec
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.synonyms import did_you_mean

Labelled = tuple[Mapping[str, str], ResolvedSpec]
"""A cell's labels, and its resolved spec."""

Address = tuple[int, int]
"""Row and column of a place in a table."""

EVALUATION = "evaluation"
"""The factor that names an evaluation, and the section of its settings."""

SWEEP = "sweep"
"""The factor that names the sweep of a cell, in tables over several sweeps."""

NO_CHOICE = "–"
"""Header of a cell that lacks an axis which other cells have."""


class LayoutError(KdxError):
    """A table does not fit the cells."""

    def __init__(self, problem: str, *, key: tuple[str | int, ...] = (), **shown: Any) -> None:
        """Takes what leads to the value at fault in the table, such as ("rows", 0); and what `KdxError` takes."""
        super().__init__(problem, **shown)
        self.key = key


@dataclass(frozen=True)
class TableLayout:
    """Headers in the order of the plan, factor by factor, and the cell at each place."""

    rows: tuple[tuple[str, ...], ...]
    """One word for each row factor."""
    columns: tuple[tuple[str, ...], ...]
    """One word for each column factor; a single empty header when the table names none."""
    at: Mapping[Address, int]
    """Where each cell stands, by its index; a place that the plan leaves empty is absent."""


def reads_evaluations(table: TableSpec) -> bool:
    """Whether the table has a factor of evaluations, so that each of a cell's stands in a place of its own."""
    return any(map(is_of_evaluation, (*table.rows, *table.columns, *table.where)))


def reads_sweeps(table: TableSpec) -> bool:
    """Whether the table has the factor of sweeps, so that each sweep's cells stand in places of their own."""
    return SWEEP in (*table.rows, *table.columns, *table.where)


def is_of_evaluation(factor: str) -> bool:
    """Whether a factor is the name of an evaluation or one of its settings."""
    return factor == EVALUATION or factor.startswith(f"{EVALUATION}.")


def evaluated(labels: Mapping[str, str], spec: ResolvedSpec, one: ResolvedEvaluation) -> Labelled:
    """A cell as one evaluation reads it: its section `evaluation` has what was read, and so have its labels.

    The name that the grid gives the evaluation is the factor `evaluation`, each setting one such as
    `evaluation.length`.
    """
    section = {**spec.plain["evaluation"], **{k: v for k, v in one.settings.items() if k in spec.plain["evaluation"]}}
    words = {f"{EVALUATION}.{name}": word for name, word in one.words.items()}
    return {**labels, EVALUATION: one.asked.name, **words}, replace(spec, plain={**spec.plain, "evaluation": section})


def _shown(metrics: Sequence[str], asked: str) -> list[str]:
    """Metrics for a message: of slices, which are many, all those of the respect that was asked for, or one of each."""
    respect, is_slice, _ = asked.partition("=")
    of_respect = [name for name in metrics if is_slice and name.startswith(f"{respect}=")]
    return of_respect or [name for name in metrics if "=" not in name or name.endswith("=5-8")]


class LayoutBuilder:
    """Lays the same cells out as one table after another; what it looked up for one serves the next."""

    def __init__(self, cells: Sequence[Labelled], *, of_sweeps: bool = False) -> None:
        """`of_sweeps`: whether each cell is labelled with its sweep, which a message then names."""
        self._cells = cells
        self._of_sweeps = of_sweeps
        self._words: dict[str, list[str | None]] = {}

    def build(self, table: TableSpec) -> TableLayout:
        """Lay the cells out as `table` asks.

        Raises:
            LayoutError: a factor, metric or baseline that no cell has, a value that leaves no cell, or two different
                cells in one place.
        """
        chosen = self._chosen(table)
        self._check_metric(chosen, table)
        row_keys, rows = self._headers(chosen, table.rows, table)
        column_keys, columns = self._headers(chosen, table.columns, table)
        row_index = {words: index for index, words in enumerate(rows)}
        column_index = {words: index for index, words in enumerate(columns)}
        _check_baseline(rows, columns, table)
        at: dict[Address, int] = {}
        for index, row, column in zip(chosen, row_keys, column_keys, strict=True):
            first = at.setdefault((row_index[row], column_index[column]), index)
            if first != index and self._what(first) != self._what(index):
                keys = zip(chosen, row_keys, column_keys, strict=True)
                here = [other for other, *key in keys if key == [row, column]]
                header = dict(zip((*table.rows, *table.columns), (*row, *column), strict=True))
                raise self._collision(here, header, table)
        return TableLayout(rows, columns, at)

    def _what(self, index: int) -> tuple[ResolvedSpec, dict[str, str]]:
        """What a place identifies: two choices that give the same cell may share a place, two evaluations may not."""
        labels, spec = self._cells[index]
        return spec, {name: word for name, word in labels.items() if name.startswith(f"{EVALUATION}.")}

    def _words_of(self, factor: str) -> list[str | None]:
        """The word of each cell."""
        if factor not in self._words:
            self._words[factor] = [factor_value(labels, spec, factor) for labels, spec in self._cells]
        return self._words[factor]

    def _chosen(self, table: TableSpec) -> list[int]:
        """Indices of the cells that the table is of."""
        chosen = list(range(len(self._cells)))
        for factor, word in table.where.items():
            words = self._words_of(factor)
            if chosen and all(words[index] is None for index in chosen):
                raise self._unknown(factor, chosen, table)
            before, chosen = chosen, [index for index in chosen if same_word(words[index], word)]
            if before and not chosen:
                known = list(dict.fromkeys(found for index in before if (found := words[index]) is not None))
                problem = f"table `{shortened(table.name)}`: no cell where {factor} = {shortened(word)}"
                hint = did_you_mean(word, known)
                raise LayoutError(problem, key=("where", factor), allowed=known, hint=hint)
        return chosen

    def _headers(
        self, chosen: Sequence[int], factors: Sequence[str], table: TableSpec
    ) -> tuple[list[tuple[str, ...]], tuple[tuple[str, ...], ...]]:
        """The header of each chosen cell, and the different ones, sorted by each factor's first appearance."""
        words = []
        for factor in factors:
            found = self._words_of(factor)
            if chosen and all(found[index] is None for index in chosen):
                raise self._unknown(factor, chosen, table)
            words.append([NO_CHOICE if (word := found[index]) is None else word for index in chosen])
        ranks = [{word: rank for rank, word in enumerate(dict.fromkeys(column))} for column in words]
        keys: list[tuple[str, ...]] = list(zip(*words, strict=True)) if words else [() for _ in chosen]
        headers = sorted(set(keys), key=lambda key: [rank[word] for rank, word in zip(ranks, key, strict=True)])
        return keys, tuple(headers)

    def _check_metric(self, chosen: Sequence[int], table: TableSpec) -> None:
        if table.metric is None and not table.margin:
            return
        specs = [self._cells[index][1] for index in chosen]
        of_tasks = {(spec.task, spec.corpus): spec.test_metrics for spec in specs}.values()
        known = [name for metrics in of_tasks for name in metrics]
        known += dict.fromkeys(spec.selection_metric for spec in specs)
        known = list(dict.fromkeys(known))
        named = [("metric", table.metric)] if table.metric is not None else []
        for key in (*named, *(("margin", name) for name in table.margin)):
            what, name = "metric" if key in named else "metric in margin", key[1]
            if known and name not in known:
                raise LayoutError(
                    f"table `{shortened(table.name)}`: unknown {what} `{shortened(name)}`",
                    key=key,
                    allowed=_shown(known, name),
                    hint=did_you_mean(name.rpartition("/")[2], known),
                )

    def _unknown(self, factor: str, chosen: Sequence[int], table: TableSpec) -> LayoutError:
        axes = dict.fromkeys(axis for index in chosen for axis in self._cells[index][0])
        paths = self._paths
        fields = dict.fromkeys(
            path for of_a_cell in dict.fromkeys(paths[index] for index in chosen) for path in of_a_cell
        )
        known = list({**axes, **fields})
        name = shortened(table.name)
        inside = [path for path in known if path.startswith(f"{factor}.")]
        sides = {"rows": table.rows, "columns": table.columns}
        key = next(((side, words.index(factor)) for side, words in sides.items() if factor in words), ("where", factor))
        if inside:
            return LayoutError(f"table `{name}`: `{factor}` is a section, not a factor", key=key, allowed=inside)
        problem = f"table `{name}`: unknown factor `{shortened(factor)}`"
        return LayoutError(problem, key=key, allowed=known, hint=did_you_mean(factor, known))

    @cached_property
    def _paths(self) -> list[tuple[str, ...]]:
        """Dotted paths of each cell's leaves; cells that have the same ones share them."""
        same: dict[tuple[str, ...], tuple[str, ...]] = {}
        found = (tuple(path for path, _ in leaves(spec.plain)) for _, spec in self._cells)
        return [same.setdefault(paths, paths) for paths in found]

    def _collision(self, here: Sequence[int], header: Mapping[str, str], table: TableSpec) -> LayoutError:
        place = ", ".join(f"{factor} = {word}" for factor, word in header.items())
        sweeps = dict.fromkeys(self._cells[index][0][SWEEP] for index in here) if self._of_sweeps else {}
        axes = dict.fromkeys(axis for index in here for axis in self._cells[index][0])
        differ = [axis for axis in axes if len({self._words_of(axis)[index] for index in here}) > 1]
        differ = [axis for axis in differ if axis not in header and not (sweeps and axis == SWEEP)]
        differ = differ or _differing([list(leaves(self._cells[index][1].plain)) for index in here], header)
        of = f" of the sweeps {' and '.join(map(shortened, sweeps))}" if len(sweeps) > 1 else ""
        return LayoutError(
            f"table `{shortened(table.name)}`: {len(here)} cells{of} fall into one place, {place};"
            f" they differ in {', '.join(differ)}",
            hint=f"add {', '.join(differ)}{f', or {SWEEP},' if of and SWEEP not in header else ''} to rows or columns",
        )


def factor_value(labels: Mapping[str, str], spec: ResolvedSpec, factor: str) -> str | None:
    """The cell's choice of `factor` in words; None when the cell has no such factor.

    Position schemes that act together are joined by `+`, other lists by `/`; an empty list is `none`.
    """
    word = spec.word(factor)
    return labels.get(factor) if word is None else word


def _check_baseline(rows: Sequence[tuple[str, ...]], columns: Sequence[tuple[str, ...]], table: TableSpec) -> None:
    factors = (*table.rows, *table.columns)
    for factor, word in table.baseline.items():
        if factor not in factors:
            raise LayoutError(
                f"table `{shortened(table.name)}`: baseline `{factor}` is neither among its rows nor its columns",
                key=("baseline", factor),
                allowed=factors,
                hint=did_you_mean(factor, factors),
            )
        side, level = (rows, table.rows) if factor in table.rows else (columns, table.columns)
        known = list(dict.fromkeys(header[level.index(factor)] for header in side))
        if known and not any(same_word(one, word) for one in known):
            raise LayoutError(
                f"table `{shortened(table.name)}`: no cell has the baseline's {factor} `{word}`",
                key=("baseline", factor),
                allowed=known,
                hint=did_you_mean(word, known),
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

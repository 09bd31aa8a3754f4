"""The place of each cell in a table: which factors make rows and columns, and in which order.

The layout is checked when the grid is read, before anything trains, and built again for the report. A factor is a
field of the resolved cell (`kernel`, `training.learning_rate`, `filter.decoder-self`) or an axis that is no field, such
as `approach`. A field is read from the resolved cell, not from the grid's wording, so equal choices share one place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any

from kdx.errors import KdxError, shortened
from kdx.grid.cell_selector import leaves, same_word
from kdx.grid.difference import varying
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.plan import NAMED_ALONE, Plan, TableSpec
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.source import Node
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

    def __init__(self, table: TableSpec, problem: str, *, key: tuple[str | int, ...] = (), **shown: Any) -> None:
        """`key`: what leads to the value at fault in the table, such as ("rows", 0); the rest is as in `KdxError`."""
        super().__init__(f"table `{shortened(table.name)}`: {problem}", **shown)
        self.key = key


@dataclass(frozen=True)
class TableLayout:
    """Headers in the order of the plan, factor by factor, and the cell at each place."""

    rows: tuple[tuple[str, ...], ...]
    """One word for each row factor."""
    columns: tuple[tuple[str, ...], ...]
    """One word for each column factor; a single empty header when the table names none."""
    at: Mapping[Address, int]
    """Place → index of its cell; a place that the plan leaves empty is absent."""


def reads_evaluations(table: TableSpec) -> bool:
    """Return whether the table has a factor of evaluations, so that each of a cell's stands in a place of its own."""
    return any(map(is_of_evaluation, (*table.rows, *table.columns, *table.where)))


def is_of_evaluation(factor: str) -> bool:
    """Return whether a factor is the name of an evaluation or one of its settings."""
    return factor == EVALUATION or factor.startswith(f"{EVALUATION}.")


def evaluated(labels: Mapping[str, str], spec: ResolvedSpec, evaluation: ResolvedEvaluation) -> Labelled:
    """Return a cell as an evaluation reads it: its section `evaluation` and its labels have what was read.

    The name that the grid gives the evaluation is the factor `evaluation`, each setting one such as
    `evaluation.length`.
    """
    section = spec.plain["evaluation"]
    section = {**section, **{key: value for key, value in evaluation.settings.items() if key in section}}
    words = {f"{EVALUATION}.{name}": word for name, word in evaluation.words.items()}
    labels = {**labels, EVALUATION: evaluation.request.name, **words}
    return labels, replace(spec, plain={**spec.plain, "evaluation": section})


def factor_value(labels: Mapping[str, str], spec: ResolvedSpec, factor: str) -> str | None:
    """Return the cell's value of a field or axis as a word; None if the cell has neither."""
    word = spec.word(factor)
    return labels.get(factor) if word is None else word


class LayoutBuilder:
    """Lays the same cells out as one table after another; a factor is looked up once for all of them."""

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
        self._check_metrics(chosen, table)
        row_keys, rows = self._headers(chosen, "rows", table)
        column_keys, columns = self._headers(chosen, "columns", table)
        _check_baseline(rows, columns, table)
        row_index = {words: index for index, words in enumerate(rows)}
        column_index = {words: index for index, words in enumerate(columns)}
        addresses = [(row_index[row], column_index[column]) for row, column in zip(row_keys, column_keys, strict=True)]
        at: dict[Address, int] = {}
        for index, address in zip(chosen, addresses, strict=True):
            first = at.setdefault(address, index)
            if first != index and self._content(first) != self._content(index):
                here = [other for other, place in zip(chosen, addresses, strict=True) if place == address]
                words = (*rows[address[0]], *columns[address[1]])
                raise self._collision(here, dict(zip((*table.rows, *table.columns), words, strict=True)), table)
        return TableLayout(rows, columns, at)

    def _content(self, index: int) -> tuple[ResolvedSpec, dict[str, str]]:
        """Return what a place identifies: two choices of one cell may share a place, two evaluations may not."""
        labels, spec = self._cells[index]
        return spec, {name: word for name, word in labels.items() if name.startswith(f"{EVALUATION}.")}

    def _words_of(self, factor: str) -> list[str | None]:
        """Return the word of each cell."""
        if factor not in self._words:
            self._words[factor] = [factor_value(labels, spec, factor) for labels, spec in self._cells]
        return self._words[factor]

    def _chosen(self, table: TableSpec) -> list[int]:
        """Return the indices of the cells that the table shows."""
        chosen = list(range(len(self._cells)))
        for factor, wanted in table.where.items():
            words = self._words_in(chosen, factor, ("where", factor), table)
            matching = [index for index, word in zip(chosen, words, strict=True) if same_word(word, wanted)]
            if chosen and not matching:
                known = list(dict.fromkeys(word for word in words if word is not None))
                problem, hint = f"no cell where {factor} = {shortened(wanted)}", did_you_mean(wanted, known)
                raise LayoutError(table, problem, key=("where", factor), allowed=known, hint=hint)
            chosen = matching
        return chosen

    def _headers(
        self, chosen: Sequence[int], side: str, table: TableSpec
    ) -> tuple[list[tuple[str, ...]], tuple[tuple[str, ...], ...]]:
        """Return the header of each chosen cell, and the different ones, sorted by each factor's first appearance."""
        levels = [
            [NO_CHOICE if word is None else word for word in self._words_in(chosen, factor, (side, number), table)]
            for number, factor in enumerate(getattr(table, side))
        ]
        keys: list[tuple[str, ...]] = list(zip(*levels, strict=True)) if levels else [() for _ in chosen]
        return keys, tuple(in_order(keys))

    def _words_in(
        self, chosen: Sequence[int], factor: str, key: tuple[str | int, ...], table: TableSpec
    ) -> list[str | None]:
        """Return the word of each chosen cell.

        Raises:
            LayoutError: none of them has the factor.
        """
        every = self._words_of(factor)
        words = [every[index] for index in chosen]
        if words and all(word is None for word in words):
            axes = dict.fromkeys(axis for index in chosen for axis in self._cells[index][0])
            fields = dict.fromkeys(field for index in chosen for field, _ in leaves(self._cells[index][1].plain))
            if inside := [field for field in fields if field.startswith(f"{factor}.")]:
                raise LayoutError(table, f"`{factor}` is a section, not a factor", key=key, allowed=inside)
            problem, known = f"unknown factor `{shortened(factor)}`", list(axes | fields)
            raise LayoutError(table, problem, key=key, allowed=known, hint=did_you_mean(factor, known))
        return words

    def _check_metrics(self, chosen: Sequence[int], table: TableSpec) -> None:
        metrics: dict[tuple[str, ...], str] = {("margin", name): name for name in table.margin}
        if table.metric is not None:
            metrics = {("metric",): table.metric} | metrics
        if not metrics or not chosen:
            return
        specs = [self._cells[index][1] for index in chosen]
        by_task = {(spec.task, spec.corpus): spec for spec in specs}
        of_tests = (name for spec in by_task.values() for name in spec.test_metrics)
        selected_by = (spec.selection_metric for spec in specs)
        of_evaluations = (self._cells[index][0].get(f"{EVALUATION}.metric") for index in chosen)
        known = list(dict.fromkeys([*of_tests, *selected_by, *filter(None, of_evaluations)]))
        for key, name in metrics.items():
            if name not in known:
                problem = f"unknown metric{'' if key == ('metric',) else ' in margin'} `{shortened(name)}`"
                hint = did_you_mean(name.rpartition("/")[2], known)
                raise LayoutError(table, problem, key=key, allowed=_shown(known, name), hint=hint)

    def _collision(self, here: Sequence[int], header: Mapping[str, str], table: TableSpec) -> LayoutError:
        place = ", ".join(f"{factor} = {word}" for factor, word in header.items())
        sweeps = dict.fromkeys(self._cells[index][0][SWEEP] for index in here) if self._of_sweeps else {}
        axes = dict.fromkeys(axis for index in here for axis in self._cells[index][0] if not (sweeps and axis == SWEEP))
        differ = [axis for axis in axes if len({self._words_of(axis)[index] for index in here}) > 1]
        differ = differ or list(varying(self._cells[index][1].plain for index in here))
        differ = [factor for factor in differ if factor not in header]
        owners = f" of the sweeps {' and '.join(map(shortened, sweeps))}" if len(sweeps) > 1 else ""
        or_sweep = f", or {SWEEP}," if owners and SWEEP not in header else ""
        return LayoutError(
            table,
            f"{len(here)} cells{owners} fall into one place, {place}; they differ in {', '.join(differ)}",
            hint=f"add {', '.join(differ)}{or_sweep} to rows or columns",
        )


def _shown(metrics: Sequence[str], wanted: str) -> list[str]:
    """Return metrics for a message: of slices, which are many, those of the wanted respect, or one of each respect."""
    respect, is_slice, _ = wanted.partition("=")
    of_respect = [name for name in metrics if is_slice and name.startswith(f"{respect}=")]
    return of_respect or [name for name in metrics if "=" not in name or name.endswith("=5-8")]


def _check_baseline(rows: Sequence[tuple[str, ...]], columns: Sequence[tuple[str, ...]], table: TableSpec) -> None:
    factors = (*table.rows, *table.columns)
    for factor, word in table.baseline.items():
        if factor not in factors:
            problem = f"baseline `{factor}` is neither among its rows nor its columns"
            hint = did_you_mean(factor, factors)
            raise LayoutError(table, problem, key=("baseline", factor), allowed=factors, hint=hint)
        side, level = (rows, table.rows) if factor in table.rows else (columns, table.columns)
        known = list(dict.fromkeys(header[level.index(factor)] for header in side))
        if known and not any(same_word(other, word) for other in known):
            problem, hint = f"no cell has the baseline's {factor} `{word}`", did_you_mean(word, known)
            raise LayoutError(table, problem, key=("baseline", factor), allowed=known, hint=hint)


def layouts_of(
    cells: Sequence[Labelled], evaluations: Sequence[Labelled], *, of_sweeps: bool = False
) -> Callable[[TableSpec], TableLayout]:
    """Return what lays cells out as a table asks, or their evaluations where it asks for these; see `LayoutBuilder`."""
    builders = [LayoutBuilder(placed, of_sweeps=of_sweeps) for placed in (cells, evaluations)]
    return lambda table: builders[bool(evaluations) and reads_evaluations(table)].build(table)


def read_tables(
    tables: Sequence[TableSpec],
    node: Node | None,
    cells: Callable[[], tuple[Sequence[Labelled], Sequence[Labelled]]],
    faults: list[KdxError],
    *,
    of_sweeps: bool = False,
) -> list[TableSpec]:
    """Return each table, with its baseline's factor; where nothing else is wrong, its layout is tried.

    Args:
        node: the list under `tables`, checked by a model.
        cells: returns those that tables place, and their evaluations; called only if there is a table.
        of_sweeps: see `LayoutBuilder`.
    """
    cells = cache(cells)
    read: list[tuple[TableSpec, Node]] = []
    seen: set[str] = set()
    for table, inner in zip(tables, node.value if node is not None else (), strict=True):
        if table.name in seen:
            problem, place = f"two tables named `{shortened(table.name)}`", inner.at(("name",))
            faults.append(KdxError(problem, place=place, hint="give one of them another name"))
        seen.add(table.name)
        try:
            read.append((_with_factor(table, inner, cells), inner))
        except KdxError as error:
            faults.append(error)
    if read and not faults:
        lay_out = layouts_of(*cells(), of_sweeps=of_sweeps)
        for table, inner in read:
            try:
                lay_out(table)
            except LayoutError as error:
                place = inner.at(error.key)
                faults.append(KdxError(error.problem, place=place, allowed=error.allowed, hint=error.hint))
    return [table for table, _ in read]


def _with_factor(
    table: TableSpec, node: Node, cells: Callable[[], tuple[Sequence[Labelled], Sequence[Labelled]]]
) -> TableSpec:
    """Return the table with a factor for a baseline that is a word, where one factor of the table alone has it.

    Raises:
        KdxError: none has it, or several.
    """
    if (word := table.baseline.get(NAMED_ALONE)) is None:
        return table
    labelled = list(chain.from_iterable(cells()))
    known = {name: {factor_value(*cell, name) for cell in labelled} for name in (*table.rows, *table.columns)}
    owners = [name for name, words in known.items() if any(same_word(other, word) for other in words)]
    place = node.at(("baseline",))
    if len(owners) > 1:
        choices = " or ".join(f"{{{name}: {word}}}" for name in owners)
        raise KdxError(f"`{shortened(word)}` is a value of {' and of '.join(owners)}", place=place, allowed=choices)
    if not owners and labelled:
        words = sorted({word for words in known.values() for word in words if word is not None})
        problem = f"no row or column of the table is `{shortened(word)}`"
        raise KdxError(problem, place=place, allowed=words, hint=did_you_mean(word, words))
    return table.model_copy(update={"baseline": dict.fromkeys(owners, word)})


def placed_cells(plan: Plan) -> tuple[list[Labelled], list[Labelled]]:
    """Return the cells of a plan, and their evaluations, as tables place them."""
    cells = [(cell.labels, ResolvedSpec.of(cell.spec)) for cell in plan.cells]
    evaluations = [
        evaluated(cell.labels, spec, evaluation)
        for cell, (_, spec) in zip(plan.cells, cells, strict=True)
        for evaluation in plan.evaluations_of(cell.id)
    ]
    return cells, evaluations


def in_order(headers: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the different headers, sorted by the first appearance of each of their words."""
    ranks = [{word: rank for rank, word in enumerate(dict.fromkeys(level))} for level in zip(*headers, strict=True)]
    return sorted(set(headers), key=lambda header: [rank[word] for rank, word in zip(ranks, header, strict=True)])

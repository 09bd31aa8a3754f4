"""The tables of a sweep: what asks for them, and how each is built from the records; without format or rounding."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import Field

from kdx.errors import KdxError, by_place, did_you_mean
from kdx.grid.field_types import Section
from kdx.grid.messages import checked
from kdx.grid.model import Tables
from kdx.grid.plan import TableSpec
from kdx.grid.seeds import SeedRule, rule_of
from kdx.grid.source import read
from kdx.grid.table_layout import SWEEP, Address, LayoutBuilder, factor_value, read_tables
from kdx.report.papers.paper_file import Paper
from kdx.report.papers.published_comparison import PublishedComparison, compare_with_published
from kdx.report.seeds_until import without_unneeded
from kdx.report.selection.evaluated import evaluated_cells
from kdx.report.selection.joined import names
from kdx.report.selection.searched import SearchedCell, searched_cells
from kdx.report.table.audit import UnequalFact, audit
from kdx.report.table.bleu_randomisation import Randomisation
from kdx.report.table.comparable import ComparableCells, comparable_cells, traits_of
from kdx.report.table.comparisons import Difference, Group, Mark, baseline_of, compare
from kdx.report.table.layout import Layout, lay_out, placed_cells
from kdx.report.table.notes import definitions, notes
from kdx.store.records import SweepRecord

Randomise = Callable[[Layout, Sequence[Difference]], Mapping[Address, Randomisation]]
"""Compares the selected runs of a table's differences over test sentences (`kdx.report.table.bleu_randomisation`)."""


@dataclass(frozen=True)
class Table:
    """A table: its cells, how they compare, and its notes, ready to be written in any format."""

    layout: Layout
    baseline: Mapping[str, str] = field(default_factory=dict)
    """Factor → word of the baseline; empty if each cell is compared with the best of its column."""
    groups: tuple[Group, ...] = ()
    """The groups of cells whose numbers compare, and what their seeds can show."""
    differences: tuple[Difference, ...] = ()
    """Each cell against its baseline, or against the best of its column."""
    randomisations: Mapping[Address, Randomisation] = field(default_factory=dict)
    """Place of a difference → the randomisation of its two selected runs; empty unless asked for."""
    marks: Mapping[Address, Mark] = field(default_factory=dict)
    """How cells compare with the best of their column."""
    legend: Mapping[Mark, str] = field(default_factory=dict)
    """The meaning of each mark in the table, such as "best mean of its column"."""
    audit: tuple[UnequalFact, ...] = ()
    """The facts that make a comparison unfair."""
    notes: tuple[str, ...] = ()
    """The sentences that explain the numbers: selection rule, n, and the words in the body."""
    definitions: tuple[str, ...] = ()
    """How the metrics were computed, as the runs recorded it."""
    searches: Mapping[Address, SearchedCell] = field(default_factory=dict)
    """Place → the search that found its cell; places whose cell was not searched for are left out."""
    published: PublishedComparison | None = None
    """Published values of the same cells; None unless asked for."""


def tables(
    sweep: SweepRecord,
    database: str = "",
    *,
    only: str | None = None,
    paper: Paper | None = None,
    randomise: Randomise | None = None,
) -> tuple[Table, ...]:
    """Every table that the grid asks for; if it asks for none, one table over all factors that vary.

    Args:
        database: the database of the sweep, for messages.
        only: the name of a single table to build.
        paper: adds its published values.
        randomise: compares the selected runs over test sentences.

    Raises:
        KdxError: a table that does not fit the cells, see `kdx.grid.table_layout.LayoutBuilder.build`; there is no
            table `only`; and whatever `randomise` raises.
    """
    sweep = without_unneeded(sweep)
    specs = [TableSpec.model_validate(table) for table in sweep.grid.get("tables") or ()] or [_default(sweep)]
    try:
        layouts = lay_out(sweep, specs)
    except KdxError as error:
        place = ", ".join(filter(None, (database, f"sweep{'s' if len(names(sweep)) > 1 else ''} {sweep.name}")))
        raise KdxError(error.problem, place=place, allowed=error.allowed, hint=error.hint) from error
    if only is not None and only not in (known := [spec.name for spec in specs]):
        raise KdxError(f"there is no table `{only}`", allowed=known, hint=did_you_mean(only, known))
    return tuple(
        _table(layout, spec, sweep, paper, randomise)
        for layout, spec in zip(layouts, specs, strict=True)
        if only in (None, spec.name)
    )


def _table(
    layout: Layout,
    spec: TableSpec,
    sweep: SweepRecord,
    paper: Paper | None,
    randomise: Randomise | None,
) -> Table:
    traits = traits_of(layout, sweep)
    comparable = comparable_cells(layout, traits)
    rule = rule_of(sweep.grid)
    winners = searched_cells(sweep)
    trained = {at: layout.trained(cell) for at, cell in layout.places.items()}
    searches = {at: winners[id] for at, id in trained.items() if id in winners}
    groups, differences, marks = compare(layout, spec, comparable, rule)
    return Table(
        layout=layout,
        baseline=spec.baseline,
        groups=groups,
        differences=differences,
        randomisations=randomise(layout, differences) if randomise else {},
        marks=marks,
        legend=_legend(marks.values(), comparable, rule),
        audit=audit(layout, comparable, traits, baseline_of(layout, spec), sweep, searches),
        notes=tuple(notes(layout, sweep, differences, rule, searches)),
        definitions=tuple(definitions(layout, sweep.provenance)),
        searches=searches,
        published=compare_with_published(layout.places, layout.records, paper) if paper else None,
    )


def _default(sweep: SweepRecord) -> TableSpec:
    """Rows over every axis that varies, one column for each task.

    Where cells of several sweeps would fall into one place, there is a column for each sweep too.
    """

    def varies(factor: str) -> bool:
        return len({factor_value(cell.labels, cell.spec, factor) for cell in sweep.cells}) > 1

    axes = sweep.grid.get("axes") or dict.fromkeys(axis for cell in sweep.cells for axis in cell.labels)
    rows = [axis for axis in axes if axis not in ("task", SWEEP) and varies(axis)]
    columns = ["task"] if rows and varies("task") else []
    spec = TableSpec(name=sweep.name, rows=tuple(rows or ["task"]), columns=tuple(columns))
    if sweep.joins:
        try:
            LayoutBuilder([(cell.labels, cell.spec) for cell in sweep.cells], of_sweeps=True).build(spec)
        except KdxError:
            return spec.model_copy(update={"columns": (*spec.columns, SWEEP)})
    return spec


def _legend(shown: Collection[Mark], comparable: Sequence[ComparableCells], rule: SeedRule | None) -> dict[Mark, str]:
    """The meaning of each mark in the table."""
    columns = [column for group in comparable for column in {column for _, column in group.cells}]
    among = "" if len(columns) == len(set(columns)) else ", among cells whose numbers compare"
    test = "over all looks" if rule else "each column by itself"
    meanings = {
        Mark.BEST: f"best mean of its column{among}",
        Mark.NOT_DISTINGUISHABLE: "may be the best as well: with 95% confidence the best of each column is among those "
        f"so marked and the bold one (Hsu 1984; {test})",
        Mark.UNTESTED: "not compared with it: a single seed, or a score that is not finite, has no spread to judge by"
        + (f"; or {rule.min} seeds have not ended yet" if rule else ""),
    }
    return {mark: meaning for mark, meaning in meanings.items() if mark in shown}


class _TablesFile(Section):
    tables: Tables = Field(default_factory=list)


def with_tables_of(path: Path, sweep: SweepRecord) -> SweepRecord:
    """The sweep with the tables that a file asks for under `tables:`, as a grid has them.

    Args:
        sweep: a sweep, or several joined.

    Raises:
        Faults: everything that is wrong with the file or with how its tables fit the cells, in the order of the file.
    """
    faults: list[KdxError] = []
    root = read(path, faults, what="file of tables")
    file, root = checked(_TablesFile, root, faults)
    if not file.tables and not faults:
        allowed = "tables: a list of tables, as a grid has them"
        faults.append(KdxError("the file asks for no tables", place=root.place, allowed=allowed))
    tables = read_tables(
        file.tables,
        root.value.get("tables"),
        lambda: placed_cells(sweep, evaluated_cells(sweep)),
        faults,
        of_sweeps=bool(sweep.joins),
    )
    if faults:
        raise by_place(faults)
    specs = [table.model_dump(mode="json") for table in tables]
    return replace(sweep, grid={**sweep.grid, "tables": specs})

"""The tables that a grid asks for, and whether its cells fit into them."""

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from kdx.errors import KdxError, did_you_mean, shortened
from kdx.grid.plan import NAMED_ALONE, Plan, TableSpec
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.source import Node
from kdx.grid.table_layout import (
    Labelled,
    LayoutBuilder,
    LayoutError,
    TableLayout,
    evaluated,
    factor_value,
    reads_evaluations,
)

Tables = Annotated[list[TableSpec], Field(min_length=1)]


def read_tables(
    tables: Sequence[TableSpec], node: Node | None, cells: Callable[[], Sequence[Labelled]], faults: list[KdxError]
) -> list[tuple[TableSpec, Node]]:
    """Each table, with its baseline's factor, and the node that asks for it.

    Args:
        node: the list under `tables`, checked by a model.
        cells: returns those of which the tables are; it is called only for a baseline that is a word.
    """
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
    return read


def _with_factor(table: TableSpec, node: Node, cells: Callable[[], Sequence[Labelled]]) -> TableSpec:
    """The table with a factor for a baseline that is a word, where one factor of the table alone has it.

    Raises:
        KdxError: none has it, or several.
    """
    if (word := table.baseline.get(NAMED_ALONE)) is None:
        return table
    labelled = cells()
    known = {name: {factor_value(*cell, name) for cell in labelled} for name in (*table.rows, *table.columns)}
    owners = [name for name, words in known.items() if word in words]
    place = node.at(("baseline",))
    if len(owners) > 1:
        choices = " or ".join(f"{{{name}: {word}}}" for name in owners)
        raise KdxError(f"`{shortened(word)}` is a value of {' and of '.join(owners)}", place=place, allowed=choices)
    if not owners and labelled:
        words = sorted({word for words in known.values() for word in words if word is not None})
        problem = f"no row or column of the table is `{shortened(word)}`"
        raise KdxError(problem, place=place, allowed=words, hint=did_you_mean(word, words))
    return table.model_copy(update={"baseline": dict.fromkeys(owners, word)})


def labelled_cells(plan: Plan) -> list[Labelled]:
    """The cells of a plan, as tables place them."""
    return [(cell.labels, ResolvedSpec.of(cell.spec)) for cell in plan.cells]


def layouts_of(plan: Plan) -> Callable[[TableSpec], TableLayout]:
    """Lays the cells of a plan out as a table asks, or their evaluations where it asks for these."""
    own = labelled_cells(plan)
    read = [
        evaluated(cell.labels, spec, one)
        for cell, (_, spec) in zip(plan.cells, own, strict=True)
        for one in plan.evaluations_of(cell.id)
    ]
    builders = {False: LayoutBuilder(own), True: LayoutBuilder(read)}
    return lambda table: builders[bool(read) and reads_evaluations(table)].build(table)


def check_tables(
    tables: Sequence[tuple[TableSpec, Node]], lay_out: Callable[[TableSpec], object], faults: list[KdxError]
) -> None:
    """Lays the cells out as each table asks; what is wrong goes to `faults`, with its place.

    Args:
        lay_out: raises LayoutError if a table does not fit the cells.
    """
    for table, node in tables:
        try:
            lay_out(table)
        except LayoutError as error:
            place = node.at(error.key)
            faults.append(KdxError(error.problem, place=place, allowed=error.allowed, hint=error.hint))

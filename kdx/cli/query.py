"""`kdx query`: queries the results database in SQL."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import typer

from kdx.cli.console import is_terminal, out_lines, say
from kdx.cli.context import Answering, Context
from kdx.cli.wording import count_of
from kdx.errors import KdxError
from kdx.report.writers.rows import to_csv, to_json, to_text
from kdx.store.database import database_at, open_database
from kdx.store.schema import metadata
from kdx.store.views import VIEWS

MOST_SHOWN = 1000
"""Largest number of rows on a terminal; elsewhere there is no limit."""


def query(
    context: Answering,
    statement: Annotated[str | None, typer.Argument(metavar="SELECT …", help="One SELECT.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV to stdout.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Show views, tables and columns.")] = False,
) -> None:
    """Query the results database in SQL, read-only.

    The views are made for queries: runs, cells, and curves with every number that a run recorded.

    Example: kdx query "SELECT kernel, seed, test_score FROM runs WHERE selected"

    Example: kdx query "SELECT step, value FROM curves WHERE run_id = 7 AND name = 'valid/bleu'" --csv
    """
    if schema:
        if statement or csv:
            raise KdxError("--schema stands alone, or with --json")
        _show_schema(context)
        return
    if not statement:
        raise KdxError("no statement is given", allowed="one SELECT, or --schema")
    if context.json and csv:
        raise KdxError("--json and --csv exclude each other")

    with open_database(context.db, write=False) as database:
        rows = database.query(statement)
    if context.json or csv:
        out_lines((to_json if context.json else to_csv)(rows.columns, rows))
    elif is_terminal() and rows.count > MOST_SHOWN:
        out_lines(to_text(rows.columns, list(islice(rows, MOST_SHOWN))))
        say(f"the first {MOST_SHOWN:,} rows; --csv or --json gives all")
    else:
        out_lines(to_text(rows.columns, rows))
    say(count_of(rows.count, "row"))


@dataclass(frozen=True)
class Relation:
    """A view or a table, and its columns with what they hold."""

    kind: str
    name: str
    comment: str | None
    columns: Mapping[str, str | None]


def _show_schema(context: Context) -> None:
    field = database_at(context.db).field
    relations = []
    for view in VIEWS:
        read = {column: f"; read one by {field(column, path)}" for column, path in view.fields.items()}
        columns = {name: f"{comment}{read.get(name, '')}" for name, comment in view.columns.items()}
        relations.append(Relation("view", view.name, view.comment, columns))
    for table in metadata.tables.values():
        comments = {column.name: column.comment for column in table.c}
        relations.append(Relation("table", table.name, table.comment, comments))

    def lines() -> Iterator[str]:
        for relation in relations:
            width = max(map(len, relation.columns))
            yield f"{relation.kind} {relation.name}: {relation.comment}"
            yield from (f"  {name:{width}}  {comment}" for name, comment in relation.columns.items())
            yield ""

    context.answer(relations, lines)

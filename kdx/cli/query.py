"""`kdx query`: queries the results database in SQL."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from kdx.cli.console import is_terminal, out, out_json, out_lines, say
from kdx.cli.options import DATABASE, Db, Files, Json
from kdx.errors import KdxError
from kdx.report.writers.rows import to_csv, to_json, to_text, word
from kdx.sanitize import sanitize
from kdx.store.database import database_at, open_database
from kdx.store.rows import Rows
from kdx.store.schema import metadata
from kdx.store.views import VIEWS

MOST_SHOWN = 1000
"""Largest number of rows on a terminal; elsewhere there is no limit."""


def query(
    statement: Annotated[str | None, typer.Argument(metavar="SELECT …", help="One SELECT.")] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on stdout.")] = False,
    json: Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Show views, tables and columns instead.")] = False,
) -> None:
    """Query the results database in SQL, read-only.

    The views are made for queries: runs, cells, and curves with every
    number that a run recorded.

    Example: kdx query "SELECT kernel, seed, test_score FROM runs WHERE selected"

    Example: kdx query "SELECT step, value FROM curves WHERE run_id = 7 AND name = 'valid/bleu'" --csv
    """
    if schema:
        _schema(db, json)
        return
    if not statement:
        raise KdxError("no statement is given", allowed="one SELECT, or --schema")
    if json and csv:
        raise KdxError("--json and --csv exclude each other")

    with open_database(db, write=False) as database:
        rows = database.query(statement)
    if json:
        out_lines(to_json(rows.columns, rows))
    elif csv:
        out_lines(to_csv(rows.columns, rows))
    elif is_terminal():
        _show(rows)
    else:
        out_lines(to_text(rows.columns, rows))
    say(f"{rows.count:,} row{'' if rows.count == 1 else 's'}")


def _show(rows: Rows) -> None:
    shown = list(islice(rows, MOST_SHOWN))
    table = Table()
    for index, column in enumerate(rows.columns):
        numbers = not any(isinstance(row[index], str | bytes) for row in shown)
        table.add_column(Text(sanitize(column)), justify="right" if numbers else "left", overflow="fold")
    for row in shown:
        table.add_row(*(Text(word(value)) for value in row))
    out(table)
    if rows.count > len(shown):
        say(f"the first {len(shown):,} rows; --csv or --json gives all")


def _schema(db: str, json: bool) -> None:
    described = list(_described(db))
    if json:
        out_json(described)
        return
    for number, one in enumerate(described):
        out(f"{'' if not number else chr(10)}{one['kind']} {one['name']}: {one['comment']}")
        width = max(map(len, one["columns"]))
        out("\n".join(f"  {name.ljust(width)}  {comment}" for name, comment in one["columns"].items()))


def _described(db: str) -> Iterator[dict[str, Any]]:
    field = database_at(db).field
    for view in VIEWS:
        read = {column: f"; read one by {field(column, path)}" for column, path in view.fields.items()}
        columns: dict[str, str | None] = {
            name: f"{comment}{read.get(name, '')}" for name, comment in view.columns.items()
        }
        yield {"kind": "view", "name": view.name, "comment": view.comment, "columns": columns}
    for table in metadata.tables.values():
        columns = {column.name: column.comment for column in table.c}
        yield {"kind": "table", "name": table.name, "comment": table.comment, "columns": columns}

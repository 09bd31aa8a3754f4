"""`kdx report`: a sweep's tables."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kdx.cli.console import out, out_json, say
from kdx.cli.options import DATABASE, Db, Json, in_database

if TYPE_CHECKING:
    from kdx.report.tables import Table


class Format(StrEnum):
    """What a table is written as."""

    TEXT = "text"
    MARKDOWN = "markdown"


def report(
    sweep: Annotated[
        str | None, typer.Argument(help="Name of a sweep, or its grid file; the one planned last if not said.")
    ] = None,
    db: Db = DATABASE,
    format: Annotated[Format, typer.Option("--format", envvar="KDX_FORMAT", help="How tables are written.")] = (
        Format.TEXT
    ),
    json: Json = False,
    table: Annotated[
        str | None, typer.Option("--table", envvar="KDX_TABLE", help="Only the table of this name.")
    ] = None,
) -> None:
    """Show a sweep's tables: per cell, the test score of the best-validation seed, and the spread over seeds.

    Example: kdx report quickstart --format markdown > table.md
    """
    from kdx.report.tables import tables
    from kdx.store.database import open_database
    from kdx.store.reader import load_sweep

    with open_database(db, write=False) as database:
        record = load_sweep(database, sweep and _sweep_name(sweep))
    shown = tables(record)
    if table is not None:
        shown = _named(shown, table)
    if json:
        from kdx.report.as_json import to_json

        out_json({"sweep": record.name, "tables": [to_json(one) for one in shown]})
    elif format is Format.MARKDOWN:
        from kdx.report.markdown import to_markdown

        out("\n".join(map(to_markdown, shown)))
    else:
        from kdx.report.text import TextTable

        for one in shown:
            out(TextTable(one))
            out("")
    say(_closing(record.name, shown, db))


def _sweep_name(sweep: str) -> str:
    """A grid file stands for the sweep that it names; anything else is a name already."""
    if not sweep.endswith((".yaml", ".yml")):
        return sweep
    from kdx.grid.load import load_grid

    return load_grid(sweep).name


def _named(tables: "tuple[Table, ...]", name: str) -> "tuple[Table, ...]":
    from kdx.errors import KdxError, did_you_mean

    names = [one.name for one in tables]
    if name not in names:
        raise KdxError(f"there is no table `{name}`", allowed=names, hint=did_you_mean(name, names))
    return tuple(one for one in tables if one.name == name)


def _closing(sweep: str, tables: "tuple[Table, ...]", db: str) -> str:
    """What the tables hold, each cell counted once, and what to type next."""
    import shlex
    from collections import Counter

    from kdx.report.tables import State

    cells = {cell.id: cell for one in tables for cell in one.cells}.values()
    states = Counter(cell.state for cell in cells)
    told = [f"{states[State.VALUE]} with a score"]
    told += [f"{states[State.NOT_CONVERGE]} not converging"] if states[State.NOT_CONVERGE] else []
    holes = states[State.HOLE]
    told += [f"{holes} hole{'s' if holes > 1 else ''}"] if holes else []
    where = shlex.quote(sweep) + in_database(db)
    following = ""
    if any(cell.unfinished for cell in cells):
        following = f"; next: kdx resume {where}"
    elif any(cell.failed for cell in cells):
        following = f"; next: kdx resume --failed {where}"
    return f"{len(cells)} cell{'' if len(cells) == 1 else 's'}: {', '.join(told)}{following}"

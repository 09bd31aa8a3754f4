"""`kdx db`: checks, copies and imports results databases."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli.console import out, say
from kdx.cli.context import Answering, InDatabase
from kdx.cli.db_import import FOUND, import_
from kdx.cli.group import group_of
from kdx.cli.wording import size
from kdx.sanitize import sanitize_lines
from kdx.shell import shell_word
from kdx.store.check import look_through
from kdx.store.database import database_at, open_database
from kdx.store.schema import REVISION


def check(context: Answering) -> None:
    """Check the whole database: pages, keys, tables, and the checksums of texts. Writes nothing.

    Exit code 5 when something is wrong with it.

    Example: kdx db check
    """
    db, checked = context.db, look_through(context.db)

    def lines() -> Iterator[str]:
        yield from (f"wrong: {sanitize_lines(fault)}" for fault in checked.faults)
        yield from (f"{rows:12,}  {table}" for table, rows in checked.rows.items())

    context.answer({"database": db, "schema": REVISION, "faults": checked.faults, "rows": checked.rows}, lines)
    if checked.faults:
        rescue = f"take it back from a copy, or save what is left: {database_at(db).recovery}"
        say(f"{db}: {len(checked.faults)} found; {rescue}")
        raise typer.Exit(FOUND)
    copy = f"; copy it with: {context.command('db backup FILE')}" if database_at(db).file else ""
    say(f"{db}: nothing is wrong{copy}")


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new copy; no file may be there.")],
    context: InDatabase,
) -> None:
    """Copy the database as it stands at one moment, also while a sweep writes it.

    Checkpoints and weights, in the folder beside the database, are not copied.

    Example: kdx db backup ~/copies/runs-monday.db
    """
    file = file.expanduser()
    with open_database(context.db, write=False) as database:
        database.back_up(file)
    out(str(file))
    say(f"copied {context.db}, {size(file.stat().st_size)}; read it with: kdx report --db {shell_word(str(file))}")


app = group_of(
    "Check, back up and import results databases.",
    "For the files of runs too: kdx doctor, kdx gc.",
    check=check,
    backup=backup,
    import_=import_,
)

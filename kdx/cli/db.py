"""`kdx db`: checks, copies and imports results databases."""

from pathlib import Path
from typing import Annotated

import typer

from kdx.cli.amounts import size
from kdx.cli.console import out, out_json, say
from kdx.cli.db_import import import_
from kdx.cli.group import CommandGroup
from kdx.cli.options import DATABASE, Db, Files, Json, in_database
from kdx.sanitize import sanitize_lines
from kdx.shell import shell_word
from kdx.store.check import look_through
from kdx.store.database import database_at, open_database
from kdx.store.version import REVISION

FOUND = 5
"""Exit code of a check that found a fault."""

app = typer.Typer(
    cls=CommandGroup,
    help="Check, back up and import results databases.",
    epilog="For the files of runs too: kdx doctor, kdx gc.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command()
def check(db: Db = DATABASE, files_in: Files = None, json: Json = False) -> None:
    """Check the whole database: pages, keys, tables, and the checksums of texts. Writes nothing.

    Exit code 5 when something is wrong with it.

    Example: kdx db check
    """
    checked = look_through(db)
    if json:
        out_json({"database": db, "schema": REVISION, "faults": checked.faults, "rows": dict(checked.rows)})
    else:
        for fault in checked.faults:
            out(f"wrong: {sanitize_lines(fault)}")
        for table, rows in checked.rows.items():
            out(f"{rows:12,}  {table}")
    if checked.faults:
        rescue = f"take it back from a copy, or save what is left: {database_at(db).recovery}"
        say(f"{db}: {len(checked.faults)} found; {rescue}")
        raise typer.Exit(FOUND)
    copy = f"; copy it with: kdx db backup FILE{in_database(db)}" if database_at(db).keeps_copies else ""
    say(f"{db}: nothing is wrong{copy}")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy to be; it must not be there yet.")],
    db: Db = DATABASE,
    files_in: Files = None,
) -> None:
    """Copy the database as it stands at one moment, also while a sweep writes it.

    Checkpoints and weights, in the folder beside the database, are not copied.

    Example: kdx db backup ~/copies/runs-monday.db
    """

    file = file.expanduser()
    with open_database(db, write=False) as database:
        database.back_up(file)
    out(str(file))
    say(f"copied {db}, {size(file.stat().st_size)}; read it with: kdx report --db {shell_word(str(file))}")


app.command("import")(import_)

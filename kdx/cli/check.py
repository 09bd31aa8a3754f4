"""`kdx report --check`: do the numbers in a file still match the database?"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdx.cli.console import out, out_json, say
from kdx.cli.db import FOUND
from kdx.cli.options import in_database
from kdx.sanitize import sanitize_lines

if TYPE_CHECKING:
    from kdx.report.table.table import Table

Check = Annotated[
    Path | None,
    typer.Option(
        "--check",
        envvar="KDX_CHECK",
        metavar="FILE",
        help="Instead of writing tables, compare those in FILE, a .json, .md or .tex of kdx report, with now.",
    ),
]


def checked(file: Path, sweep: str, tables: "tuple[Table, ...]", json: bool, db: str, *, partly: bool) -> int:
    """Say what a file tells otherwise than the tables do now; the exit code.

    Args:
        partly: these are not all of the sweep's tables.
    """
    from dataclasses import asdict

    from kdx.report.check.check import check

    found = check(file, tables, partly=partly)
    if json:
        compared = {"file": str(file), "sweep": sweep, "tables": found.tables, "numbers": found.numbers}
        differences = [asdict(one) for one in found.changes]
        out_json(compared | {"differences": differences, "not_compared": found.left_out})
    else:
        for one in found.changes:
            what = f"{one.what} " if one.what else ""
            out(sanitize_lines(f"{one.table}: {one.place}: {what}was {one.was}, is {one.now}"))
        for part in found.left_out:
            out(sanitize_lines(f"not compared: {part}"))
    told = f"{file}: {found.numbers} values of {', '.join(found.tables)}"
    absent = f"; not in it: {', '.join(found.absent)}" if found.absent else ""
    if not found.changes and not found.left_out:
        say(f"{told} match sweep {sweep}{absent}")
        return 0
    where = shlex.quote(sweep) + in_database(db)
    differ = f"{len(found.changes)} differ" if found.changes else "they match"
    if found.left_out:
        parts = len(found.left_out)
        differ += f", {parts} part{'' if parts == 1 else 's'} could not be compared"
    say(f"{told} compared, {differ}{absent}; as they are now: kdx report {where}")
    return FOUND

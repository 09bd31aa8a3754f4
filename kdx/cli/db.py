"""`kdx db`: checks, copies and imports results databases."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from kdx.cli.console import FOUND, out, out_json, say
from kdx.cli.context import Answering, InDatabase
from kdx.cli.group import group_of
from kdx.cli.wording import count_of, counts_of, size
from kdx.run_files.folder_ownership import is_strange, refuse_stranger, take
from kdx.run_files.imported import Brought, bring
from kdx.sanitize import sanitize_lines
from kdx.shell import shell_word
from kdx.store.check import look_through
from kdx.store.database import database_at, open_database
from kdx.store.importing import Imported, import_database
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
        rescue = f"restore a backup, or save what is left: {database_at(db).recovery}"
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


def import_(
    sources: Annotated[
        list[str], typer.Argument(metavar="SRC", help="Databases, files or addresses; they stay as they are.")
    ],
    context: Answering,
    with_files: Annotated[
        bool, typer.Option("--with-files", help="Copy weights and logs too, from beside each SRC.")
    ] = False,
) -> None:
    """Import finished runs, sweeps and notes of other databases, such as that of a cluster.

    A run that both have with equal results stays as it is. A finished run replaces one that is not. Results are never
    overwritten: if they differ, the run is listed as a conflict, with exit code 5. A second import of the same database
    changes nothing. To copy a database, to a server for example, import it into a new one.

    Example: kdx db import cluster-a.db cluster-b.db --db all.db
    """
    imports: list[tuple[Imported, Brought]] = []
    try:
        for source in sources:
            with _progress() as progress:
                imported = import_database(source, context.db, progress=progress)
                imports.append((imported, _bring(source, context.db, imported, with_files)))
            for conflict in imported.conflicts if not context.json else ():
                out(sanitize_lines(f"{imported.source}: {conflict.what}: {', '.join(conflict.differences)}"))
            for line in _lines(*imports[-1], with_files):
                say(f"{imported.source}: {line}")
    finally:
        # What came before an error stays.
        if context.json and imports:
            out_json([_as_json(imported, brought) for imported, brought in imports])
    if any(imported.conflicts for imported, _ in imports):
        raise typer.Exit(FOUND)
    say(f"read {context.db} with: {context.command('report')}")


def _bring(source: str, target: str, imported: Imported, copy: bool) -> Brought:
    if copy:
        with open_database(source, write=False) as opened:
            refuse_stranger(opened)
    with open_database(target, write=True) as database:
        if imported.folders and is_strange(database) and (moved := take(database)):
            say(f"note: {moved}")
        return bring(database, imported.folders, copy=copy)


def _lines(imported: Imported, brought: Brought, files: bool) -> Iterator[str]:
    runs, sweeps = count_of(imported.runs, "run"), count_of(imported.sweeps, "sweep")
    yield f"{runs} and {sweeps} came; already here: {count_of(imported.same, 'run')}"
    if imported.waiting:
        waiting = count_of(sum(imported.waiting.values()), "run")
        yield f"without results there, so pending here: {waiting} ({counts_of(imported.waiting)})"
    if imported.running:
        yield f"still running, so without results here: {count_of(imported.running, 'run')}; import again later"
    if imported.conflicts:
        conflicts = count_of(len(imported.conflicts), "conflict")
        yield f"{conflicts}: what is here stays, and nothing of it came from there"
        if any(conflict.what.startswith("sweep ") for conflict in imported.conflicts):
            yield "to have both sweeps, give one another name in its grid, run kdx sweep there, and import again"
    if files:
        yield f"copied {count_of(brought.files, 'file')}, {size(brought.bytes)}"
    if brought.elsewhere:
        more = "" if files else "; the same command copies them with --with-files"
        yield f"the weights of {count_of(len(brought.elsewhere), 'run')} are beside it{more}"


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """The rows that were written, on a terminal."""
    columns = SpinnerColumn(), TextColumn("{task.completed:,.0f} rows")
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bars:
        task = bars.add_task("importing", total=None)
        yield lambda rows: bars.advance(task, rows)


def _as_json(imported: Imported, brought: Brought) -> dict[str, object]:
    folders = {"folders": [{"name": each.name, "state": each.state} for each in imported.folders]}
    files = {
        "copied": brought.files,
        "bytes": brought.bytes,
        "weights_elsewhere": [each.name for each in brought.elsewhere],
    }
    return {**asdict(imported), **folders, "files": files}


app = group_of(
    "Check, back up and import results databases.",
    "Example: kdx db backup copy.db. For the files of runs: kdx doctor, kdx gc.",
    check=check,
    backup=backup,
    import_=import_,
)

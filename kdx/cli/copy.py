"""`kdx db copy`: copies the results database into another one, of the same or another kind."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from kdx.cli.amounts import count_of
from kdx.cli.console import out_json, say
from kdx.cli.options import Files, Json
from kdx.run_files.files import files_beside
from kdx.shell import shell_word
from kdx.store import copying
from kdx.store.copying import Copied


def copy(
    source: Annotated[str, typer.Argument(metavar="SRC", help="The database to copy, a file or an address.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="The copy: nothing is there yet, or an empty database.")],
    files_in: Files = None,
    json: Json = False,
) -> None:
    """Copy the whole database into another one, of the same or another kind, and compare every row.

    It may be in use meanwhile. All is written at once: a call that is
    killed leaves an empty database, into which it can be made again.
    The copy has the same identity, so that files of runs that are copied
    too are its own; checkpoints and weights are not copied.

    Example: kdx db copy runs.db copies/runs.db
    """
    with progress_bar("copying") as progress:
        copied = copying.copy(source, target, progress)
    rows = sum(copied.rows.values())
    if json:
        out_json({"source": copied.source, "target": copied.target, "rows": dict(copied.rows), "equal": True})
    say(f"copied {count_of(rows, 'row')} of {len(copied.rows)} tables, and compared them: every row is equal")
    say(_files(copied))
    say(f"read it with: kdx report --db {shell_word(copied.target)}")


def _files(copied: Copied) -> str:
    former, new = files_beside(copied.former_location), files_beside(copied.location)
    if former == new:
        return f"both keep the files of their runs in {new}, and only one of them may: name another folder with --files"
    if not former.is_dir():
        return f"checkpoints and weights are none of it: there are none at {former}"
    return f"checkpoints and weights were not copied; bring them with: {_by_hand(former, new)}"


def _by_hand(former: Path, new: Path) -> str:
    # With the point the content goes into the folder, whether it is there or not.
    return f"cp -r {shell_word(f'{former}/.')} {shell_word(str(new))}"


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on a terminal, nothing elsewhere; it is told how many rows are done, of how many, if that is known."""
    if not sys.stderr.isatty():
        yield lambda done, of: None
        return

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(what, total=None)
        yield lambda done, of: bars.update(bar, completed=done, total=of)

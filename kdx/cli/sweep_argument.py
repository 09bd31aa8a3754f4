"""Loads the sweeps of a command line: by name, by grid file, or the most recent one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kdx.cli.context import Context
from kdx.cli.named_runs import is_grid_file
from kdx.errors import KdxError
from kdx.report.selection.joined import joined
from kdx.shell import shell_word
from kdx.store.database import Database
from kdx.store.reading import load_sweep
from kdx.store.records import SweepRecord
from kdx.store.sqlite.file import is_database_file


def load_named(database: Database, sweep: str | None, context: Context) -> SweepRecord:
    """Return the sweep of this name, or of the grid in the file of this name, or the most recent one.

    Raises:
        KdxError: there is no such sweep, or the argument is a database.
    """
    if sweep and is_grid_file(sweep):
        # What reads a grid would be a third of the time of a command that names a sweep.
        from kdx.cli.planned import record_of

        return record_of(database, sweep, context)
    if sweep and is_database_file(Path(sweep)):
        raise KdxError(f"`{sweep}` is a database, not a sweep", hint=f"name it with --db {shell_word(sweep)}")
    return load_sweep(database, sweep)


def load_together(database: Database, sweeps: Sequence[str], context: Context, *, join: bool) -> SweepRecord:
    """Return these sweeps, joined if there are several; the most recent one if there is none.

    Args:
        sweeps: names and grid files.
        join: whether a single sweep is joined too, so that its tables can name it.

    Raises:
        KdxError: there is no such sweep, or one that cannot be joined.
    """
    records = [load_named(database, sweep, context) for sweep in sweeps or (None,)]
    return joined(records) if join or len({record.id for record in records}) > 1 else records[0]


def table_names(grids: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return sweep → the names of its tables.

    Args:
        grids: of `kdx.store.reading.grids`.
    """
    # If a grid asks for no table, its default table has the name of the sweep.
    return {
        name: [str(table["name"]) for table in grid.get("tables") or [{"name": name}]] for name, grid in grids.items()
    }

"""Finds the sweep of a command line: by its name, by its grid file, or the one planned last."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kdx.cli.named_runs import is_grid_file
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.report.selection.joined import joined, names
from kdx.shell import shell_word
from kdx.store.database import Database
from kdx.store.reading import load_sweep
from kdx.store.records import SweepRecord
from kdx.store.sqlite.file import is_database_file


def plan_in_file(sweep: str | None, verb: str) -> Plan | None:
    """The plan of a grid file; None if the argument is the name of a sweep, or missing.

    Args:
        verb: the command, for its hint.

    Raises:
        KdxError: the argument is a database.
    """
    if sweep and is_grid_file(sweep):
        # Of a command that names a sweep, what reads a grid would be a third of the time.
        from kdx.grid.load import load_grid

        return load_grid(sweep)
    if sweep and is_database_file(Path(sweep)):
        raise KdxError(f"`{sweep}` is a database, not a sweep", hint=f"kdx {verb} --db {shell_word(sweep)}")
    return None


def load_named(database: Database, sweep: str | None, plan: Plan | None, db: str) -> SweepRecord:
    """The sweep of this name, or of the grid in the file of this name, or the one planned last.

    Args:
        plan: the plan of the grid file, if `sweep` is one.
        db: the database, as the user typed it.
    """
    if plan and sweep:
        # As above.
        from kdx.cli.planned import record_of

        return record_of(database, plan, sweep, db)
    return load_sweep(database, sweep)


def plans_in_files(sweeps: Sequence[str], verb: str) -> list[Plan | None]:
    """`plan_in_file` of each."""
    return [plan_in_file(one, verb) for one in sweeps]


def load_together(
    database: Database, sweeps: Sequence[str], plans: Sequence[Plan | None], db: str, *, join: bool
) -> SweepRecord:
    """These sweeps, joined where there are several; the one planned last where there is none.

    Args:
        sweeps: names and grid files.
        plans: of `plans_in_files`.
        db: the database, as the user typed it.
        join: whether a single sweep is joined too, so that its tables can name it.

    Raises:
        KdxError: there is no such sweep, or one that cannot be joined.
    """
    asked: list[tuple[str | None, Plan | None]] = list(zip(sweeps, plans, strict=True)) or [(None, None)]
    records = [load_named(database, sweep, plan, db) for sweep, plan in asked]
    return joined(records) if join or len({one.id for one in records}) > 1 else records[0]


def sweep_words(sweep: SweepRecord) -> tuple[str, ...]:
    """The words of a command line that name the sweep, or each that it joins."""
    return tuple(word for name in names(sweep) for word in ("--sweep", name))


def table_names(grids: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Sweep → the names of its tables.

    Args:
        grids: of `kdx.store.reading.grids`.
    """
    # If a grid asks for no table, its default table has the name of the sweep.
    return {
        name: [str(table["name"]) for table in grid.get("tables") or [{"name": name}]] for name, grid in grids.items()
    }

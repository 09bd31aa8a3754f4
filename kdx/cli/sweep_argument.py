"""Finds the sweep of a command line: by its name, by its grid file, or the one planned last."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kdx.grid.plan import Plan
    from kdx.store.database import Database
    from kdx.store.records import SweepRecord


def plan_in_file(sweep: str | None, verb: str) -> "Plan | None":
    """The plan of a grid file; None if the argument is the name of a sweep, or missing.

    Args:
        verb: the command, for its hint.

    Raises:
        KdxError: the argument is a database.
    """
    from kdx.errors import KdxError
    from kdx.store.backends import is_database_file

    if sweep and sweep.endswith((".yaml", ".yml")):
        from kdx.grid.load import load_grid

        return load_grid(sweep)
    if sweep and is_database_file(Path(sweep)):
        raise KdxError(f"`{sweep}` is a database, not a sweep", hint=f"kdx {verb} --db {shlex.quote(sweep)}")
    return None


def load_named(database: "Database", sweep: str | None, plan: "Plan | None", db: str) -> "SweepRecord":
    """The sweep of this name, or of the grid in the file of this name, or the one planned last.

    Args:
        plan: the plan of the grid file, if `sweep` is one.
        db: the database, as the user typed it.
    """
    if plan and sweep:
        from kdx.cli.planned import record_of

        return record_of(database, plan, sweep, db)
    from kdx.store.reading import load_sweep

    return load_sweep(database, sweep)

"""`kdx sweep`: run a grid."""

from typing import TYPE_CHECKING, Annotated

import typer

from kdx.cli.console import say
from kdx.cli.options import DATABASE, MOST_RUNS, Db, MaxRuns, Seeds, Workers, seeds_of

if TYPE_CHECKING:
    from kdx.grid.plan import Plan
    from kdx.store.database import Database


def sweep(
    grid: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped grid.")],
    db: Db = DATABASE,
    workers: Workers = None,
    seeds: Seeds = None,
    max_runs: MaxRuns = MOST_RUNS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="As `kdx plan`: say what would be done.")] = False,
) -> None:
    """Train what a grid asks for and the database does not have yet.

    Ctrl-C once stops at the next safe point, twice at once; `kdx resume` goes on.

    Example: kdx sweep quickstart --workers 2
    """
    from kdx.cli.plan import plan as say_plan

    if dry_run:
        say_plan(grid, db, seeds, max_runs)
        return
    from kdx.grid.load import load_grid
    from kdx.store.database import open_database

    wanted = load_grid(grid, seeds=seeds_of(seeds), most_runs=max_runs)
    with open_database(db, write=True, create=True) as database:
        raise typer.Exit(run(wanted, database, db, workers))


def run(plan: "Plan", database: "Database", db: str, workers: int | None) -> int:
    """Run a plan to its end, showing how it goes; the exit code."""
    import os
    import signal
    from pathlib import Path
    from types import FrameType

    from kdx.cli.progress import progress
    from kdx.store import writer
    from kdx.sweep.local import LocalSweep

    sweep_id = writer.register(database, plan, plan.grid)
    count = workers or len(os.sched_getaffinity(0))
    files = Path(db).with_suffix(".files") if "://" not in db else Path("runs.files")
    with progress(plan) as listener:
        local = LocalSweep(plan, database, db, sweep_id, files, count, listener)

        def on_signal(signum: int, frame: FrameType | None) -> None:
            listener.note("stopping at the next safe point; once more ends at once")
            local.stop(signum)

        before = {signum: signal.signal(signum, on_signal) for signum in (signal.SIGINT, signal.SIGTERM)}
        try:
            stopped = local.run()
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)
    return _close(listener.counts, stopped, plan, db)


def _close(counts: dict[str, int], stopped: int | None, plan: "Plan", db: str) -> int:
    """The last line: what was done, and what to type next."""
    import shlex

    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    where = "" if db == DATABASE else f" --db {shlex.quote(db)}"
    name = shlex.quote(plan.name)
    if stopped is not None:
        say(f"{sum(counts.values())} runs: {told}; go on with: kdx resume {name}{where}")
        return 128 + stopped
    if counts.get("failed"):
        say(f"{sum(counts.values())} runs: {told}; try them again with: kdx resume {name} --failed{where}")
        return 4
    say(f"{sum(counts.values())} runs: {told}; next: kdx report {name}{where}")
    return 0

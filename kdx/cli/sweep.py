"""`kdx sweep`: run a grid."""

from typing import TYPE_CHECKING, Annotated

import typer

from kdx.axes import IfChanged
from kdx.cli.console import never_wait_for_readers, say
from kdx.cli.options import (
    DATABASE,
    HANG_AFTER,
    MOST_RUNS,
    Changed,
    Db,
    HangAfter,
    MaxRuns,
    Replace,
    Seeds,
    Workers,
    in_database,
    seeds_of,
)

if TYPE_CHECKING:
    from kdx.grid.plan import Plan
    from kdx.store.database import Database

FAILED = 4
"""Exit code of a sweep that went to its end, with runs that failed."""


def sweep(
    grid: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped grid.")],
    db: Db = DATABASE,
    workers: Workers = None,
    seeds: Seeds = None,
    max_runs: MaxRuns = MOST_RUNS,
    hang_after: HangAfter = HANG_AFTER,
    if_changed: Changed = IfChanged.REFUSE,
    replace: Replace = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", envvar="KDX_DRY_RUN", help="As `kdx plan`: say what would be done.")
    ] = False,
) -> None:
    """Train what a grid asks for and the database does not have yet.

    Ctrl-C once stops at the next safe point, twice at once; `kdx resume` goes on.

    Example: kdx sweep quickstart --workers 2
    """
    from kdx.cli.plan import plan as say_plan

    if dry_run:
        say_plan(grid, db, seeds, max_runs, replace)
        return
    import shlex
    from dataclasses import replace as replaced

    from kdx.cli.planned import change_of, leaving
    from kdx.grid.load import load_grid
    from kdx.store.database import open_database
    from kdx.store.recording import register
    from kdx.sweep.corpora import prepare_data

    command = shlex.join(("kdx", "sweep", grid, *(("--seeds", seeds) if seeds else ())))
    wanted = replaced(load_grid(grid, seeds=seeds_of(seeds), most_runs=max_runs), command=command)
    # Before anything is made: a corpus that is missing, or that a cell does not fit, starts nothing.
    for note in prepare_data(wanted):
        say(f"note: {note}")
    with open_database(db, write=True, create=True) as database:
        change = change_of(database, wanted, grid, db, replaces=replace)
        if change and (told := leaving(change, wanted, db)):
            say(f"note: {told}")
        register(database, wanted, wanted.grid)
        raise typer.Exit(run(wanted, database, db, workers, hang_after, if_changed))


def run(
    plan: "Plan", database: "Database", db: str, workers: int | None, hang_after: float, if_changed: IfChanged
) -> int:
    """Run a plan that is registered, or a part of one, to its end, showing how it goes; the exit code."""
    import faulthandler
    import os
    import signal
    from types import FrameType

    from kdx.cli.progress import progress
    from kdx.sweep.cards import cards
    from kdx.sweep.files import files_beside
    from kdx.sweep.local import LocalSweep
    from kdx.sweep.ownership import take

    never_wait_for_readers()
    gpus = cards()
    count = workers or len(gpus or os.sched_getaffinity(0))
    if moved := take(database):
        say(f"note: {moved}")
    with progress(plan) as listener:
        files = files_beside(database.location)
        local = LocalSweep(
            plan, database, db, files, count, listener, hang_after=hang_after, if_changed=if_changed, cards=gpus
        )

        def on_signal(signum: int, frame: FrameType | None) -> None:
            local.dump() if signum == signal.SIGUSR1 else local.stop(signum)

        heeded = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            heeded.append(signal.SIGHUP)
        before = {signum: signal.signal(signum, on_signal) for signum in heeded}
        # Its own stacks even where it hangs too deep for a handler.
        faulthandler.register(signal.SIGUSR1, chain=True)
        try:
            stopped = local.run()
        finally:
            faulthandler.unregister(signal.SIGUSR1)
            for signum, handler in before.items():
                signal.signal(signum, handler)
    return _close(listener.counts, stopped, plan.name, db)


def _close(counts: dict[str, int], stopped: int | None, sweep: str, db: str) -> int:
    """The last line: what was done, and what to type next."""
    import shlex

    told = f"{sum(counts.values())} runs: " + ", ".join(f"{count} {state}" for state, count in counts.items())
    where = shlex.quote(sweep) + in_database(db)
    if stopped is not None:
        say(f"{told}; go on with: kdx resume {where}")
        return 128 + stopped
    if counts.get("failed"):
        say(f"{told}; try them again with: kdx resume --failed {where}")
        return FAILED
    say(f"{told}; next: kdx report {where}")
    return 0

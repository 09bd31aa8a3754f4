"""`kdx worker`: runs whatever is to be done in a database."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of
from kdx.cli.console import never_wait_for_readers, say
from kdx.cli.custom_code import announce
from kdx.cli.named_runs import known_sweep
from kdx.cli.options import DATABASE, Components, Db, Files, in_database, with_run_options
from kdx.cli.progress import progress
from kdx.cli.running import FAILED, copy_to_dashboard, heeded_signals, winner_lines
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.run_files.folder_ownership import take
from kdx.run_options import RunOptions
from kdx.shell import kdx_command, shell_word
from kdx.store.database import Database, open_database
from kdx.store.records import RunState
from kdx.sweep.at_a_time import AtATime
from kdx.sweep.budget import read_wall_time
from kdx.sweep.gpus import gpus_for, visible_gpus
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.open_sweeps import OpenSweeps
from kdx.sweep.supervisor import Shared, Supervisor
from kdx.tune.search import Searching


@with_run_options
def worker(
    sweeps: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completion.sweeps_and_grids,
            metavar="[SWEEP|GRID.yaml]…",
            help="Sweeps, or their grid files; every unfinished one if none.",
        ),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    at_a_time: AtATime = AtATime(),
    components: Components = None,
    max_time: Annotated[
        str | None,
        typer.Option(
            "--max-time",
            metavar="4h|90m|30s",
            help="Stop after so much wall time, with checkpoints from which others go on.",
        ),
    ] = None,
    wait: Annotated[
        str,
        typer.Option("--wait", metavar="10m", help="How long to wait for work when there is none."),
    ] = "0m",
    leave_unlike: Annotated[
        str,
        typer.Option(
            "--leave-unlike",
            metavar="10m",
            help="How long a run that was begun under other conditions, or whose checkpoint is not here, is left to "
            "others; then --if-changed says what happens to it.",
        ),
    ] = "10m",
    options: RunOptions = RunOptions(),
) -> None:
    """Run what a database has pending, beside other workers.

    It takes its work from the database alone, the last planned sweep
    first, and sees sweeps that are added while it works. It ends when
    nothing is left that it can do. The exit code is 4 while something
    is left that failed or that others have to do.

    Example: kdx worker --max-time 4h

    Example: kdx worker quickstart --wait 10m
    """
    # Other workers may still be of the kdx that wrote it.
    with open_database(db, write=True) as database:
        names = [known_sweep(database, sweep, db).name for sweep in sweeps or ()]
        raise typer.Exit(_work(database, names, db, at_a_time, components, max_time, wait, leave_unlike, options))


def _work(
    database: Database,
    names: list[str],
    db: str,
    at_a_time: AtATime,
    components: Path | None,
    max_time: str | None,
    wait: str,
    leave_unlike: str,
    options: RunOptions,
) -> int:
    begun = time.monotonic()
    deadline = None if max_time is None else begun + read_wall_time("--max-time", max_time, least=1.0)
    shared = Shared(read_wall_time("--leave-unlike", leave_unlike), read_wall_time("--wait", wait))
    never_wait_for_readers()
    gpus = gpus_for(at_a_time, visible_gpus())
    open_sweeps = OpenSweeps(database, names, components, _Said(database), lambda: supervisor.works)
    if moved := take(database):
        say(f"note: {moved}")
    workers = at_a_time.runs(len(gpus.names))
    with progress(None, workers=workers) as listener:
        supervisor = Supervisor(
            open_sweeps,
            database,
            workers,
            listener,
            ForkServer(),
            options=options,
            gpus=gpus,
            deadline=deadline,
            shared=shared,
        )
        with heeded_signals(supervisor):
            stopped = supervisor.run()
        if listener.running:
            listener.killed()
    ended = list(listener.ended_here.values())
    summary, where = _summary(ended), in_database(db)
    with_components = f" --components {shell_word(str(components))}" if components else ""
    if stopped is not None:
        why = f"--max-time {max_time} is over; " if supervisor.out_of_time else ""
        say(f"{summary}; {why}others continue, or: {kdx_command('worker', *names, options=with_components + where)}")
        return 128 + stopped
    if supervisor.gave_up:
        *_, last = supervisor.failed_in_a_row.values()
        say(
            f"{summary}; {len(supervisor.failed_in_a_row)} runs failed here one after another, so that it begins no "
            f"more; the last: {last}; see kdx status{where}"
        )
        return FAILED
    not_done = [f"{count} {state}" for state, count in listener.counts.items() if state in _LEFT]
    evaluations = [f"{count} evaluations {state}" for state, count in listener.evaluations.items() if state in _LEFT]
    if not_done or evaluations or open_sweeps.incomplete or RunState.FAILED in ended:
        more = f"; not done: {', '.join(not_done + evaluations)}" if not_done or evaluations else ""
        takes = "; --if-changed restart, or continue, takes those that were left to others" if listener.why_left else ""
        say(f"{summary}{more}{takes}; see kdx status{where}")
        return FAILED
    say(f"{summary}; next: kdx report{where}")
    return 0


_LEFT = ("pending", "interrupted", "running", "failed", "paused", "to make")
"""States of runs and evaluations that are not done."""


def _summary(states: Sequence[RunState]) -> str:
    if not states:
        return "no run ended here"
    of_each = ", ".join(f"{count} {state}" for state, count in Counter(one.value for one in states).items())
    return f"{count_of(len(states), 'run')} ended here: {of_each}"


class _Said:
    """Says what is found of sweeps."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def opened(self, plan: Plan) -> None:
        search = "; it is searched first" if plan.searched else ""
        say(f"works at {plan.name}: {count_of(len(plan.runs), 'run')}{search}")
        announce(plan)

    def lacking(self, sweep: str, cells: int | None, why: KdxError) -> None:
        of = f"{count_of(cells, 'cell')} of {sweep}" if cells else sweep
        say(f"note: {of} left to other workers: {why}")

    def searched(self, plan: Plan, search: Searching) -> None:
        copy_to_dashboard(search, plan, self._database)
        for line in winner_lines(search, plan):
            say(line)

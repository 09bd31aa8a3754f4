"""`kdx worker`: trains pending runs of a database."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from kdx.cli.beside import BesideRuns
from kdx.cli.console import say
from kdx.cli.context import InDatabase
from kdx.cli.named_runs import known_sweep
from kdx.cli.options import Components, Hardware, Running, sweep_argument
from kdx.cli.planned import announce
from kdx.cli.progress import progress
from kdx.cli.running import FAILED, copy_to_dashboard, resources, supervise, winner_lines
from kdx.cli.wording import count_of, counts_of
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.shell import shell_word
from kdx.store.database import open_database
from kdx.store.records import RunState
from kdx.sweep.budget import read_wall_time
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.open_sweeps import OpenSweeps
from kdx.sweep.supervisor import Shared, Supervisor
from kdx.tune.search import Searching

_LEFT = ("pending", "interrupted", "running", "failed", "paused", "to make")
"""States of runs and evaluations that are not done."""


def worker(
    context: InDatabase,
    at_a_time: Hardware,
    options: Running,
    beside: BesideRuns,
    sweeps: Annotated[
        list[str] | None, sweep_argument("Sweeps, or their grid files; default: every unfinished one.")
    ] = None,
    components: Components = None,
    max_time: Annotated[
        str | None, typer.Option("--max-time", metavar="4h|90m|30s", help="Save checkpoints and stop after this time.")
    ] = None,
    wait: Annotated[
        str, typer.Option("--wait", metavar="10m", help="How long to wait for work when there is none.")
    ] = "0m",
    leave_unlike: Annotated[
        str,
        typer.Option(
            "--leave-unlike",
            metavar="10m",
            help="How long other workers have to resume a run that started with other libraries, code or hardware, or"
            " whose checkpoint is not here; then --if-changed decides.",
        ),
    ] = "10m",
) -> None:
    """Train pending runs of a database, beside other workers.

    It takes its work from the database alone, the most recent sweep first, and sees sweeps that are added while it
    works. It ends when nothing is left that it can do. The exit code is 4 while something is left that failed or that
    others have to do.

    Example: kdx worker --max-time 4h

    Example: kdx worker quickstart --wait 10m
    """
    deadline = None if max_time is None else time.monotonic() + read_wall_time("--max-time", max_time, least=1.0)
    shared = Shared(read_wall_time("--leave-unlike", leave_unlike), read_wall_time("--wait", wait))
    with open_database(context.db, write=True) as database:
        names = [known_sweep(database, sweep, context).name for sweep in sweeps or ()]
        workers, gpus = resources(database, at_a_time)
        open_sweeps = OpenSweeps(database, names, components, _Messages(), lambda: supervisor.works)
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
            stopped = supervise(supervisor, listener)
    ended = list(listener.ended_here.values())
    summary, status = _summary(ended), context.command("status")
    if stopped is not None:
        why = f"--max-time {max_time} has passed; " if supervisor.out_of_time else ""
        folder = f" --components {shell_word(str(components))}" if components else ""
        again = context.command("worker", *names, options=folder)
        say(f"{summary}; {why}others continue, or: {again}")
        raise typer.Exit(128 + stopped)
    if supervisor.gave_up:
        *_, last = supervisor.failed_in_a_row.values()
        failures = f"{len(supervisor.failed_in_a_row)} runs failed here one after another, so it starts no more"
        say(f"{summary}; {failures}; the last: {last}; see {status}")
        raise typer.Exit(FAILED)
    left = {state: count for state, count in listener.counts.items() if state in _LEFT}
    left |= {f"evaluations {state}": count for state, count in listener.evaluations.items() if state in _LEFT}
    if left or open_sweeps.incomplete or RunState.FAILED in ended:
        more = f"; not done: {counts_of(left)}" if left else ""
        still_left = any(decision.left for decision in listener.decisions.values())
        takes = "; --if-changed restart, or continue, takes those that were left to others" if still_left else ""
        say(f"{summary}{more}{takes}; see {status}")
        raise typer.Exit(FAILED)
    say(f"{summary}; next: {context.command('report')}")


def _summary(states: Sequence[RunState]) -> str:
    if not states:
        return "no run ended here"
    return f"{count_of(len(states), 'run')} ended here: {counts_of(Counter(state.value for state in states))}"


class _Messages:
    """Reports what a worker finds of sweeps."""

    def opened(self, plan: Plan) -> None:
        search = "; it is searched first" if plan.searched else ""
        say(f"works on {plan.name}: {count_of(len(plan.runs), 'run')}{search}")
        announce(plan)

    def lacking(self, sweep: str, cells: int | None, why: KdxError) -> None:
        what = f"{count_of(cells, 'cell')} of {sweep}" if cells else sweep
        say(f"note: {what} left to other workers: {why}")

    def searched(self, search: Searching) -> None:
        copy_to_dashboard(search)
        for line in winner_lines(search):
            say(line)

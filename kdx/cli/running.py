"""Runs registered plans to their end, for all commands that start runs."""

import faulthandler
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from kdx.cli.budget import what_is_left_out
from kdx.cli.console import never_wait_for_readers, say
from kdx.cli.context import Context
from kdx.cli.progress import Lines, progress
from kdx.cli.suggest import computing_options, resume, retry
from kdx.cli.wording import count_of, counts_of
from kdx.grid.plan import Plan
from kdx.run_files.folder_ownership import take
from kdx.run_options import RunOptions
from kdx.shell import kdx_command
from kdx.store.database import Database
from kdx.store.records import RunState
from kdx.sweep.budget import Budget
from kdx.sweep.covered import covered
from kdx.sweep.decide import decisions_in
from kdx.sweep.gpus import AtATime, visible_gpus
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.placement import Gpus
from kdx.sweep.plan_forecast import expected_seconds
from kdx.sweep.supervisor import Supervisor
from kdx.tune.search import Searching

FAILED = 4
"""Exit code of a sweep that ended with failed runs."""
UNFINISHED = {RunState.PENDING, RunState.RUNNING, RunState.INTERRUPTED}
"""States of runs that a command may take up."""


def run_plan(
    plan: Plan,
    database: Database,
    context: Context,
    at_a_time: AtATime,
    options: RunOptions,
    *,
    trains: bool = True,
    budget: Budget | None = None,
    search: Searching | None = None,
    again: str | None = None,
    components: Path | None = None,
) -> int:
    """Run a registered plan, or a part of one, to its end, show its progress, and return the exit code.

    Args:
        at_a_time: how many runs are trained at a time.
        trains: whether runs are trained; else only evaluations of completed runs are made.
        budget: after which active runs are interrupted; None: there is no end.
        search: the search whose trials are run, in place of the plan's runs.
        again: the command that continues what was stopped; default: `kdx resume`, or `kdx evaluate`.
        components: the folder of custom components that the user named.
    """
    never_wait_for_readers()
    gpus = visible_gpus()
    count = at_a_time.runs(len(gpus))
    if moved := take(database):
        say(f"note: {moved}")
    if budget:
        decisions = decisions_in(database, plan)
        enough_for = covered(decisions, expected_seconds(database, plan), count, budget.deadline - time.monotonic())
        if note := what_is_left_out(budget, enough_for, plan):
            say(f"note: {note}")

    def expect() -> Mapping[str, float | None]:
        # A search knows neither its next trials nor their cells; their time is that of the trials before.
        return {} if search else database.persist(lambda: expected_seconds(database, plan))

    with progress(plan, search, workers=count, expect=expect) as listener:
        supervisor = Supervisor(
            lambda: (search.advance() if search else plan,),
            database,
            count,
            listener,
            ForkServer(),
            options=options,
            gpus=Gpus(gpus, at_a_time.on_each(len(gpus))),
            trains=trains,
            deadline=budget.deadline if budget else None,
        )
        stopped = supervise(supervisor, listener)
    computing = computing_options(context, database, plan.name, components)
    if stopped is not None:
        why = ""
        if budget and supervisor.out_of_time:
            why = f"the budget of {budget.text} is used; "
        elif budget and supervisor.nothing_fits:
            why = f"no other run fits into the budget of {budget.text}; "
        again = again or kdx_command("resume" if trains else "evaluate", plan.name, options=computing)
        say(f"{_summary(listener)}; {why}resume with: {again}")
        return 128 + stopped
    if search is None:
        return _close(listener, plan.name, context, computing)
    if paused := sorted({str(pause) for pause in listener.pauses}):
        again = resume(plan.name, computing)
        say(f"{_summary(listener)}; paused: {'; '.join(paused)}; try them again with: {again}")
    return FAILED if paused else 0


def supervise(supervisor: Supervisor, listener: Lines) -> int | None:
    """Run a supervisor to its end, and return the signal that stopped it, or None.

    SIGINT, SIGTERM and SIGHUP stop it at the next safe points of its runs; SIGUSR1 writes stacks to their logs.
    """

    def on_signal(signum: int, frame: FrameType | None) -> None:
        supervisor.dump() if signum == signal.SIGUSR1 else supervisor.stop(signum)

    handled = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        handled.append(signal.SIGHUP)
    before = {signum: signal.signal(signum, on_signal) for signum in handled}
    # This dumps the stacks of this process even where a Python handler cannot run.
    faulthandler.register(signal.SIGUSR1, chain=True)
    try:
        stopped = supervisor.run()
    finally:
        faulthandler.unregister(signal.SIGUSR1)
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if listener.running:
        listener.killed()
    return stopped


def _summary(listener: Lines) -> str:
    """Return the number of runs in each state, and of evaluations if there are any; or how far a search is."""
    if listener.search is not None:
        return listener.whole_in_words()
    counts, evaluations = listener.counts, listener.evaluations
    summary = f"{count_of(sum(counts.values()), 'run')}: {counts_of(counts)}"
    if evaluations:
        summary += f"; {count_of(sum(evaluations.values()), 'evaluation')}: {counts_of(evaluations)}"
    return summary


def _close(listener: Lines, sweep: str, context: Context, options: str) -> int:
    """Write the last line of a plan that came to its end, with the next command, and return the exit code.

    Args:
        options: options of a command that computes.
    """
    summary, counts, evaluations = _summary(listener), listener.counts, listener.evaluations
    if counts.get("failed"):
        failed = max((run for run, state in listener.ended_here.items() if state is RunState.FAILED), default=None)
        logs = f"see why with: {context.command('logs', str(failed))}; " if failed is not None else ""
        say(f"{summary}; {logs}try them again with: {retry(RunState.FAILED, sweep, options)}")
        return FAILED
    if evaluations.get("failed") or evaluations.get("to make"):
        again = f"{' --failed' if evaluations.get('failed') else ''}{options}"
        say(f"{summary}; try them again with: {kdx_command('evaluate', sweep, options=again)}")
        return FAILED
    if counts.get("cancelled"):
        say(f"{summary}; take up again with: {retry(RunState.CANCELLED, sweep, options)}")
        return 0
    say(f"{summary}; next: {context.command('report', sweep)}")
    return 0

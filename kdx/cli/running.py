"""Runs a registered plan to its end and shows its progress, for all commands that start runs."""

import faulthandler
import shlex
import signal
import time
from types import FrameType

from kdx.cli.console import never_wait_for_readers, say
from kdx.cli.options import in_database, retry_cancelled
from kdx.cli.progress import progress
from kdx.cli.wording import what_is_left_out
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.machine import runs_at_a_time
from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import take
from kdx.run_options import RunOptions
from kdx.store.database import Database
from kdx.sweep.budget import Budget, covered, read_budget
from kdx.sweep.decisions import decisions_in
from kdx.sweep.gpus import visible_gpus
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.outlook import expected_seconds
from kdx.sweep.supervisor import Supervisor

FAILED = 4
"""Exit code of a sweep that ended with failed runs."""


def budget_from_now(text: str | None) -> Budget | None:
    """The budget of a command that begins now; None without one.

    Raises:
        KdxError: it is no budget, or none of this machine.
    """
    if text is None:
        return None
    budget = read_budget(text, time.monotonic())
    if budget.unit == "gpuh" and not visible_gpus():
        raise KdxError(f"--budget `{text}`, but no GPU is visible here", allowed="coreh, or wall time such as 6h")
    return budget


def run_plan(
    plan: Plan,
    database: Database,
    db: str,
    workers: int | None,
    options: RunOptions,
    *,
    trains: bool = True,
    budget: Budget | None = None,
) -> int:
    """Runs a registered plan, or a part of one, to its end, shows its progress, and returns the exit code.

    Args:
        db: the database, as the user typed it.
        workers: number of concurrent runs; None for the number of GPUs, or else of cores.
        trains: whether runs are trained; else only evaluations of completed runs are made.
        budget: after which active runs are interrupted; None: there is no end.
    """
    never_wait_for_readers()
    gpus = visible_gpus()
    count = runs_at_a_time(workers, gpus)
    if moved := take(database):
        say(f"note: {moved}")
    files = files_beside(database.location)
    deadline = budget.deadline(count) if budget else None
    if budget and deadline is not None:
        decisions = decisions_in(database, plan, files)
        found = covered(decisions, expected_seconds(database, plan), count, deadline - time.monotonic())
        if note := what_is_left_out(budget, found, plan):
            say(f"note: {note}")
    with progress(plan) as listener:
        host = ForkServer()
        supervisor = Supervisor(
            plan,
            database,
            db,
            files,
            count,
            listener,
            host,
            options=options,
            gpus=gpus,
            trains=trains,
            deadline=deadline,
            predict=lambda: expected_seconds(database, plan),
        )

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
    verb = "resume" if trains else "evaluate"
    why = ""
    if budget and supervisor.out_of_time:
        why = f"the budget of {budget.text} is used; "
    elif budget and supervisor.nothing_fits:
        why = f"no other run fits into the budget of {budget.text}; "
    return _close(listener.counts, listener.evaluations, stopped, plan.name, db, verb, why)


def _close(
    counts: dict[str, int],
    evaluations: dict[str, int],
    stopped: int | None,
    sweep: str,
    db: str,
    verb: str,
    why: str = "",
) -> int:
    """Writes the last line, with counts of runs and the next command, and returns the exit code.

    Args:
        why: it was stopped, where that was no signal.
    """
    summary = f"{sum(counts.values())} runs: " + ", ".join(f"{count} {state}" for state, count in counts.items())
    if evaluations:
        of_each = ", ".join(f"{count} {state}" for state, count in evaluations.items())
        summary += f"; {sum(evaluations.values())} evaluations: {of_each}"
    where = shlex.quote(sweep) + in_database(db)
    if stopped is not None:
        say(f"{summary}; {why}go on with: kdx {verb} {where}")
        return 128 + stopped
    if counts.get("failed"):
        say(f"{summary}; try them again with: kdx resume --failed {where}")
        return FAILED
    if evaluations.get("failed") or evaluations.get("to make"):
        say(f"{summary}; try them again with: kdx evaluate --failed {where}")
        return FAILED
    if counts.get("cancelled"):
        say(f"{summary}; take up again with: {retry_cancelled(sweep, db)}")
        return 0
    say(f"{summary}; next: kdx report {where}")
    return 0

"""What the commands that start runs share: a registered plan is run to its end, and shown how it goes."""

import faulthandler
import os
import shlex
import signal
from types import FrameType

from kdx.cli.console import never_wait_for_readers, say
from kdx.cli.options import in_database
from kdx.cli.progress import progress
from kdx.grid.plan import Plan
from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import take
from kdx.run_options import RunOptions
from kdx.store.database import Database
from kdx.sweep.gpus import visible_gpus
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.supervisor import Supervisor

FAILED = 4
"""Exit code of a sweep that went to its end, with runs that failed."""


def run_plan(
    plan: Plan, database: Database, db: str, workers: int | None, options: RunOptions, *, trains: bool = True
) -> int:
    """Run a plan that is registered, or a part of one, to its end, showing how it goes; the exit code.

    Args:
        db: the database, as it was typed.
        workers: runs at a time; None: as many as there are GPUs, or else cores.
        trains: whether runs are trained, or only evaluations made of those that are completed.
    """
    never_wait_for_readers()
    gpus = visible_gpus()
    count = workers or len(gpus or os.sched_getaffinity(0))
    if moved := take(database):
        say(f"note: {moved}")
    with progress(plan) as listener:
        files = files_beside(database.location)
        host = ForkServer()
        supervisor = Supervisor(
            plan, database, db, files, count, listener, host, options=options, gpus=gpus, trains=trains
        )

        def on_signal(signum: int, frame: FrameType | None) -> None:
            supervisor.dump() if signum == signal.SIGUSR1 else supervisor.stop(signum)

        heeded = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            heeded.append(signal.SIGHUP)
        before = {signum: signal.signal(signum, on_signal) for signum in heeded}
        # Its own stacks even where it hangs too deep for a handler.
        faulthandler.register(signal.SIGUSR1, chain=True)
        try:
            stopped = supervisor.run()
        finally:
            faulthandler.unregister(signal.SIGUSR1)
            for signum, handler in before.items():
                signal.signal(signum, handler)
    verb = "resume" if trains else "evaluate"
    return _close(listener.counts, listener.evaluations, stopped, plan.name, db, verb)


def _close(
    counts: dict[str, int], evaluations: dict[str, int], stopped: int | None, sweep: str, db: str, verb: str
) -> int:
    """The last line: what was done, and what to type next."""
    told = f"{sum(counts.values())} runs: " + ", ".join(f"{count} {state}" for state, count in counts.items())
    if evaluations:
        of_each = ", ".join(f"{count} {state}" for state, count in evaluations.items())
        told += f"; {sum(evaluations.values())} evaluations: {of_each}"
    where = shlex.quote(sweep) + in_database(db)
    if stopped is not None:
        say(f"{told}; go on with: kdx {verb} {where}")
        return 128 + stopped
    if counts.get("failed"):
        say(f"{told}; try them again with: kdx resume --failed {where}")
        return FAILED
    if evaluations.get("failed") or evaluations.get("to make"):
        say(f"{told}; try them again with: kdx evaluate --failed {where}")
        return FAILED
    say(f"{told}; next: kdx report {where}")
    return 0

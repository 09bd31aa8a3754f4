"""Submits workers to Slurm that do what is left of a plan."""

import os
from dataclasses import replace
from pathlib import Path

from kdx.cli.console import say
from kdx.cli.context import Context
from kdx.cli.suggest import computing_options
from kdx.cli.wording import count_of
from kdx.components.find import laid_out
from kdx.components.registry import components_of
from kdx.grid.plan import Plan
from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import take
from kdx.run_options import RunOptions
from kdx.shell import kdx_command
from kdx.slurm.job_options import JobOptions
from kdx.slurm.submission import MOST_JOBS, submit
from kdx.store.database import Database
from kdx.store.find import sweep_named
from kdx.sweep.decide import Action, decisions_in
from kdx.sweep.gpus import AtATime


def submit_workers(
    plan: Plan, database: Database, context: Context, at_a_time: AtATime, options: RunOptions, slurm: JobOptions
) -> None:
    """Submit workers that do what is left of a registered plan, and suggest how to look after them.

    Args:
        at_a_time: how many runs go at a time in each job.
    """
    if moved := take(database):
        say(f"note: {moved}")
    files = files_beside(database.location)
    to_do = (Action.START, Action.CONTINUE, Action.EVALUATE, Action.WAIT)
    left = sum(decision.action in to_do for decision in decisions_in(database, plan))
    if not left and not plan.searched:
        say(f"nothing is left to do; next: {context.command('report', plan.name)}")
        return
    jobs = slurm.jobs or (MOST_JOBS if plan.searched else min(left, MOST_JOBS))
    components = laid_out(components_of(plan.components))

    def words(folder: Path) -> list[str]:
        words = ["worker", "--if-changed", options.if_changed.value, "--hang-after", f"{options.hang_after:g}"]
        words += ["--keep-state"] if options.keep_state else []
        words += ["--workers", str(at_a_time.workers)] if at_a_time.workers else []
        words += ["--per-gpu", str(at_a_time.per_gpu)] if at_a_time.per_gpu else []
        words += ["--components", str(folder)] if components else []
        return [*words, "--", plan.name]

    sweep = (sweep_named(database, plan.name), plan.name)
    of_this_machine = ("KDX_WORKERS", "KDX_PER_GPU", "KDX_DEVICES", "CUDA_VISIBLE_DEVICES")
    environment = {name: value for name, value in os.environ.items() if name not in of_this_machine}
    environment["KDX_DB"] = _from_anywhere(context.db)
    again = kdx_command("resume", plan.name, options=f" --slurm{computing_options(context, database, plan.name)}")
    done = submit(files, sweep, replace(slurm, jobs=jobs), jobs, words, environment, again, components)
    runs = "a search" if plan.searched else count_of(left, "run")
    say(f"submitted {count_of(done.jobs, 'job')} ({done.array}) for {runs} of {plan.name}; logs in {done.folder}")
    say(f"next: {context.command('status', plan.name)}, or {context.command('cancel', plan.name)}")


def _from_anywhere(db: str) -> str:
    """Return the address of the database for a process in another folder."""
    scheme, slashes, path = db.partition("sqlite:///")
    if slashes and not scheme:
        return f"{slashes}{Path(path).expanduser().absolute()}"
    return db if "://" in db else str(Path(db).expanduser().absolute())

"""Submits workers of a registered sweep to Slurm."""

import os
from dataclasses import replace
from pathlib import Path

from kdx.cli.amounts import count_of
from kdx.cli.console import say
from kdx.cli.options import in_database, in_database_with_components
from kdx.components.find import laid_out
from kdx.components.registry import components_of
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import take
from kdx.run_options import RunOptions
from kdx.shell import kdx_command
from kdx.slurm.job_options import JobOptions
from kdx.slurm.submission import MOST_JOBS, submit
from kdx.store.database import Database
from kdx.store.find import sweep_named
from kdx.sweep.at_a_time import AtATime
from kdx.sweep.decide import Action, decisions_in


def refuse_budget(asked: JobOptions | None, budget: str | None) -> None:
    """A budget is of one command, and workers of Slurm are many.

    Raises:
        KdxError: both are asked for.
    """
    if asked is not None and budget is not None:
        raise KdxError("--budget and --slurm exclude each other", hint="--time is the time limit of a job")


def submit_workers(
    plan: Plan, database: Database, db: str, at_a_time: AtATime, options: RunOptions, asked: JobOptions
) -> None:
    """Submits workers that do what is left of a registered plan, and says how they are looked after.

    Args:
        db: the database, as the user typed it.
        at_a_time: how many runs go at a time in each job.
    """
    if moved := take(database):
        say(f"note: {moved}")
    files = files_beside(database.location)
    todo = (Action.START, Action.CONTINUE, Action.EVALUATE, Action.REPEAT, Action.WAIT)
    left = sum(one.action in todo for one in decisions_in(database, plan))
    where = in_database(db)
    if not left and not plan.searched:
        say(f"nothing is left to do; next: {kdx_command('report', plan.name, options=where)}")
        return
    jobs = asked.jobs or (MOST_JOBS if plan.searched else min(left, MOST_JOBS))
    components = laid_out(components_of(plan.components))

    def words(folder: Path) -> list[str]:
        found = ["worker", "--if-changed", options.if_changed.value]
        found += ["--hang-after", f"{options.hang_after:g}"]
        found += ["--workers", str(at_a_time.workers)] if at_a_time.workers else []
        found += ["--per-gpu", str(at_a_time.per_gpu)] if at_a_time.per_gpu else []
        found += ["--components", str(folder)] if components else []
        return [*found, "--", plan.name]

    sweep = (sweep_named(database, plan.name), plan.name)
    environment = {**os.environ, "KDX_DB": _from_anywhere(db)}
    for of_this_machine in ("KDX_WORKERS", "KDX_PER_GPU", "KDX_DEVICES", "CUDA_VISIBLE_DEVICES"):
        environment.pop(of_this_machine, None)
    again = kdx_command("resume", plan.name, options=" --slurm" + in_database_with_components(db, database, plan.name))
    done = submit(files, sweep, replace(asked, jobs=jobs), jobs, words, environment, again, components)
    runs = "a search" if plan.searched else count_of(left, "run")
    say(f"submitted {count_of(done.jobs, 'job')} ({done.array}) for {runs} of {plan.name}; logs in {done.folder}")
    status, cancel = (kdx_command(verb, plan.name, options=where) for verb in ("status", "cancel"))
    say(f"next: {status}, or {cancel}")


def _from_anywhere(db: str) -> str:
    """The address of the database for a process in another folder."""
    scheme, slashes, path = db.partition("sqlite:///")
    if slashes and not scheme:
        return f"{slashes}{Path(path).expanduser().absolute()}"
    return db if "://" in db else str(Path(db).expanduser().absolute())

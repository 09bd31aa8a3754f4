"""Runs plans for all commands that start runs: searches first what they tune, here or in workers submitted to Slurm."""

import faulthandler
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from kdx.cli.console import never_wait_for_readers, say
from kdx.cli.context import Context
from kdx.cli.planned import what_is_left_out
from kdx.cli.progress import Lines, progress
from kdx.cli.suggest import computing_options, evaluate, resume, retry
from kdx.cli.wording import choices_of, count_of, counts_of
from kdx.components.find import laid_out
from kdx.components.registry import components_of
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.metrics.decimals import rounded
from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import take
from kdx.run_options import RunOptions
from kdx.shell import kdx_command
from kdx.slurm.job_options import JobOptions
from kdx.slurm.submission import MOST_JOBS, submit
from kdx.store.database import Database
from kdx.store.reading import names
from kdx.store.recording import register_winners
from kdx.store.records import RunState
from kdx.sweep.budget import Budget
from kdx.sweep.covered import covered
from kdx.sweep.decide import Action, decisions_in
from kdx.sweep.gpus import AtATime, visible_gpus
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.placement import Gpus
from kdx.sweep.plan_forecast import expected_seconds
from kdx.sweep.supervisor import Supervisor
from kdx.tune.search import Searching

FAILED = 4
"""Exit code of a sweep that ended with failed runs."""


@dataclass(frozen=True)
class Runner:
    """Runs plans as the options of a command say."""

    database: Database
    context: Context
    at_a_time: AtATime
    """How many runs are trained at a time, here or in each job."""
    options: RunOptions
    slurm: JobOptions | None = None
    """Jobs that do all of it; None: this process."""
    budget: Budget | None = None
    """After it active runs are interrupted; None: there is no end."""
    components: Path | None = None
    """The folder of custom components that the user named."""

    def do(self, plan: Plan, *, search_only: str | None = None) -> int:
        """Search what a plan tunes and run it, or submit workers for it, and return the exit code.

        The plan was registered before; one that tunes is registered again with the winners.

        Args:
            search_only: the command that continues the search, where the winners are registered and not trained.
        """
        if self.slurm is not None:
            self._submit(plan, self.slurm)
            return 0
        if not plan.searched:
            return self.run(plan)
        search = Searching(self.database, plan)
        search.look()
        code = 0
        if not search.done:
            code = self.run(search.advance(), search=search, again=search_only)
            search.look()
        # Of a search that is done too: the command that ended it may have been killed before this.
        copy_to_dashboard(search)
        if code not in (0, FAILED):
            return code
        # What is paused of a search has no winner; those of the others are there.
        with_winners = search.with_winners()
        if not register_winners(self.database, with_winners):
            there = plan.name in names(self.database)
            options = computing_options(self.context, self.database, plan.name)
            what, again = (
                ("planned anew", resume(plan.name, options)) if there else ("removed", self.context.command("status"))
            )
            say(f"{plan.name} was {what} meanwhile, and its winners are not planned; next: {again}")
            return code
        for line in winner_lines(search):
            say(line)
        lost = len(plan.cells) - len(with_winners.trained)
        if lost:
            status = self.context.command("status", plan.name)
            say(f"no trial completed, so left out: {count_of(lost, 'cell')}; see {status}")
        code = self.run(with_winners) if with_winners.trained and search_only is None else 0
        return code or (FAILED if lost else 0)

    def run(self, plan: Plan, *, trains: bool = True, search: Searching | None = None, again: str | None = None) -> int:
        """Run a registered plan, or a part of one, to its end, show its progress, and return the exit code.

        Args:
            trains: whether runs are trained; else only evaluations of completed runs are made.
            search: the search whose trials are run, in place of the plan's runs.
            again: the command that continues what was stopped; default: `kdx resume`, or `kdx evaluate`.
        """
        database, budget = self.database, self.budget
        count, gpus = resources(database, self.at_a_time)
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
                options=self.options,
                gpus=gpus,
                trains=trains,
                deadline=budget.deadline if budget else None,
            )
            stopped = supervise(supervisor, listener)
        computing = computing_options(self.context, database, plan.name, self.components)
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
            return _close(listener, plan.name, self.context, computing)
        if paused := sorted({str(pause) for pause in listener.pauses}):
            again = resume(plan.name, computing)
            say(f"{_summary(listener)}; paused: {'; '.join(paused)}; try them again with: {again}")
        return FAILED if paused else 0

    def _submit(self, plan: Plan, slurm: JobOptions) -> None:
        """Submit workers that do what is left of a registered plan, and suggest how to look after them."""
        database, context, options, at_a_time = self.database, self.context, self.options, self.at_a_time
        take_files(database)
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

        of_this_machine = ("KDX_DEVICES", "CUDA_VISIBLE_DEVICES")
        environment = {name: value for name, value in os.environ.items() if name not in of_this_machine}
        environment["KDX_DB"] = _from_anywhere(context.db)
        if data := environment.get("KDX_DATA"):
            environment["KDX_DATA"] = str(Path(data).expanduser().absolute())
        again = kdx_command("resume", plan.name, options=f" --slurm{computing_options(context, database, plan.name)}")
        done = submit(files, plan.name, slurm, jobs, words, environment, again, components)
        runs = "a search" if plan.searched else count_of(left, "run")
        say(f"submitted {count_of(done.jobs, 'job')} ({done.array}) for {runs} of {plan.name}; logs in {done.folder}")
        say(f"next: {context.command('status', plan.name)}, or {context.command('cancel', plan.name)}")


def take_files(database: Database) -> None:
    """Take the folder of files beside a database, and report what that moves."""
    if moved := take(database):
        say(f"note: {moved}")


def resources(database: Database, at_a_time: AtATime) -> tuple[int, Gpus]:
    """Return how many runs go at a time, and on which GPUs, in a process that is about to supervise."""
    never_wait_for_readers()
    take_files(database)
    gpus = visible_gpus()
    return at_a_time.runs(len(gpus)), Gpus(gpus, at_a_time.on_each(len(gpus)))


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
        again = evaluate(sweep, options, failed=bool(evaluations.get("failed")))
        say(f"{summary}; try them again with: {again}")
        return FAILED
    if counts.get("cancelled"):
        say(f"{summary}; take up again with: {retry(RunState.CANCELLED, sweep, options)}")
        return 0
    say(f"{summary}; next: {context.command('report', sweep)}")
    return 0


def copy_to_dashboard(search: Searching) -> None:
    """Copy the trials that have ended to where optuna-dashboard finds them."""
    # Optuna, which only a search needs.
    from kdx.tune.dashboard import copy_searches

    try:
        copy_searches(search)
    except KdxError as error:
        # Nothing of the search depends on the dashboard.
        say(f"note: optuna-dashboard shows no new trials: {error.problem}; {error.hint}")


def winner_lines(search: Searching) -> Iterator[str]:
    """Return what each search found, in one line a cell."""
    for cell in search.plan.cells:
        if cell.search is None:
            continue
        choices = choices_of(cell.labels, cell.id[:8])
        trials = search.trials(cell.search.id)
        ended = ", ".join(f"{count} {state}" for state, count in Counter(trial.state for trial in trials).items())
        best = search.winner(cell.search.id)
        if best is None:
            yield f"{choices}: no winner of {count_of(len(trials), 'trial')} ({ended})"
            continue
        settings = ", ".join(f"{name} {value}" for name, value in best.parameters.items())
        metric = cell.spec.selection[0]
        assert best.value is not None  # it completed
        score = f"{metric} {rounded(best.value, metric)}"
        yield f"{choices}: trial {best.number} of {len(trials)} ({ended}): {settings}; {score}"


def _from_anywhere(db: str) -> str:
    """Return the address of the database for a process in another folder."""
    scheme, slashes, path = db.partition("sqlite:///")
    if slashes and not scheme:
        return f"{slashes}{Path(path).expanduser().absolute()}"
    return db if "://" in db else str(Path(db).expanduser().absolute())

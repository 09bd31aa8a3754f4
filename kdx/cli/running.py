"""Runs a registered plan to its end and shows its progress, for all commands that start runs."""

import faulthandler
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kdx.cli.budget import what_is_left_out
from kdx.cli.console import never_wait_for_readers, say
from kdx.cli.context import Context
from kdx.cli.progress import progress
from kdx.cli.suggest import computing_options, retry_cancelled, retry_failed
from kdx.cli.wording import count_of, counts_of
from kdx.errors import KdxError
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.tuning import Tuning
from kdx.run_files.folder_ownership import take
from kdx.run_options import RunOptions
from kdx.shell import kdx_command
from kdx.store.database import Database
from kdx.store.recording import register
from kdx.store.records import RunState
from kdx.sweep.budget import Budget, covered, read_budget
from kdx.sweep.decide import decisions_in
from kdx.sweep.forecast import in_words, makespan
from kdx.sweep.gpus import AtATime, visible_gpus
from kdx.sweep.hosts.fork_server import ForkServer
from kdx.sweep.placement import gpus_for
from kdx.sweep.plan_forecast import expected_seconds
from kdx.sweep.supervisor import Supervisor
from kdx.tune.search import Searching

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
    """Runs a registered plan, or a part of one, to its end, shows its progress, and returns the exit code.

    Args:
        at_a_time: how many runs go at a time.
        trains: whether runs are trained; else only evaluations of completed runs are made.
        budget: after which active runs are interrupted; None: there is no end.
        search: the search whose trials are run, in place of the plan's runs.
        again: the command that goes on with what was stopped; None: `kdx resume`, or `kdx evaluate`.
        components: the folder of custom components that the user named.
    """
    never_wait_for_readers()
    gpus = gpus_for(at_a_time, visible_gpus())
    count = at_a_time.runs(len(gpus.names))
    if moved := take(database):
        say(f"note: {moved}")
    deadline = budget.deadline(count) if budget else None
    if budget and deadline is not None:
        decisions = decisions_in(database, plan)
        found = covered(decisions, expected_seconds(database, plan), count, deadline - time.monotonic())
        if note := what_is_left_out(budget, found, plan):
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
            gpus=gpus,
            trains=trains,
            deadline=deadline,
        )
        with heeded_signals(supervisor):
            stopped = supervisor.run()
        if listener.running:
            listener.killed()
    verb = "resume" if trains else "evaluate"
    why = ""
    if budget and supervisor.out_of_time:
        why = f"the budget of {budget.text} is used; "
    elif budget and supervisor.nothing_fits:
        why = f"no other run fits into the budget of {budget.text}; "
    options_again = computing_options(context, database, plan.name, components)
    again = again or kdx_command(verb, plan.name, options=options_again)
    if search is None:
        failed = max((run for run, state in listener.ended_here.items() if state is RunState.FAILED), default=None)
        if stopped is None:
            return _close(listener.counts, listener.evaluations, plan.name, context, options_again, failed)
        say(f"{_summary(listener.counts, listener.evaluations)}; {why}resume with: {again}")
        return 128 + stopped
    if stopped is None:
        paused = sorted({str(pause) for pause in listener.pauses})
        if paused:
            again = retry_failed(plan.name, options_again)
            say(f"{listener.whole_in_words()}; paused: {'; '.join(paused)}; try them again with: {again}")
        return FAILED if paused else 0
    say(f"{listener.whole_in_words()}; {why}resume with: {again}")
    return 128 + stopped


@contextmanager
def heeded_signals(supervisor: Supervisor) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP stop a supervisor at its runs' next safe points; SIGUSR1 writes stacks to logs."""

    def on_signal(signum: int, frame: FrameType | None) -> None:
        supervisor.dump() if signum == signal.SIGUSR1 else supervisor.stop(signum)

    handled = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        handled.append(signal.SIGHUP)
    before = {signum: signal.signal(signum, on_signal) for signum in handled}
    # This dumps the stacks of this process even where a Python handler cannot run.
    faulthandler.register(signal.SIGUSR1, chain=True)
    try:
        yield
    finally:
        faulthandler.unregister(signal.SIGUSR1)
        for signum, handler in before.items():
            signal.signal(signum, handler)


def search_and_run(
    plan: Plan,
    database: Database,
    context: Context,
    at_a_time: AtATime,
    options: RunOptions,
    *,
    budget: Budget | None = None,
    search_only: str | None = None,
    components: Path | None = None,
) -> int:
    """Searches what a plan tunes, registers it with the winners, and runs it; returns the exit code.

    A plan that tunes nothing is run; it was registered before.

    Args:
        search_only: the command that goes on with the search, where the winners are registered and not trained.
        components: as of `run_plan`.
    """
    if not plan.searched:
        return run_plan(plan, database, context, at_a_time, options, budget=budget, components=components)
    search = Searching(database, plan)
    search.look()
    # Winners of a search that is done stay planned; the others have no cell yet.
    register(database, search.with_winners(), plan.grid)
    if not search.done:
        code = run_plan(
            search.advance(),
            database,
            context,
            at_a_time,
            options,
            budget=budget,
            search=search,
            again=search_only,
            components=components,
        )
        search.look()
        copy_to_dashboard(search, plan, database)
        if code not in (0, FAILED):
            return code
    # What is paused of a search has no winner; those of the others are there.
    with_winners = search.with_winners()
    register(database, with_winners, plan.grid)
    for line in winner_lines(search, plan):
        say(line)
    lost = len(plan.cells) - len(with_winners.trained)
    if lost:
        say(f"{lost} cells have no completed trial, and are left out: see kdx status{context.options}")
    code = 0
    if with_winners.trained and search_only is None:
        code = run_plan(with_winners, database, context, at_a_time, options, budget=budget, components=components)
    return code or (FAILED if lost else 0)


def search_lines(plan: Plan, database: Database | None, at_a_time: int) -> Iterator[str]:
    """What is searched before winners are trained, and how long both will take, in one line each."""
    templates = {cell.search.id: cell for cell in plan.cells if cell.search and not cell.won}
    if not templates:
        return
    ended = dict.fromkeys(templates, 0)
    seconds: Mapping[str, float | None] = {}
    if database is not None:
        search = Searching(database, plan)
        search.look()
        ended = {key: len(search.trials(key)) for key in templates}
        seconds = expected_seconds(database, plan)
    cells = [cell for cell in plan.cells if cell.search and not cell.won]
    trials = {key: (cell, _search_of(cell)) for key, cell in templates.items()}
    left = [(cell, max(0, one.trials - ended[key]) * len(one.seeds)) for key, (cell, one) in trials.items()]
    steps = sum(count * cell.spec.training.steps for cell, count in left)
    tuning = _search_of(cells[0])
    done = f", of which {sum(ended.values())} have ended" if any(ended.values()) else ""
    seeds = count_of(len(tuning.seeds), "tuning seed")
    yield (
        f"first a search: {count_of(len(templates), 'cell')} × {tuning.trials} trials × {seeds}{done}; "
        f"{sum(count for _, count in left):,} runs to train, {steps:,} steps at most by the grid's steps "
        f"({tuning.sampler}, pruner {tuning.pruner})"
    )
    runs = count_of(len(cells) * len(plan.seeds), "run")
    seeds = count_of(len(plan.seeds), "seed")
    if rule := plan.seed_rule:
        runs, seeds = f"{len(cells) * rule.min} to {runs}", rule.number
    yield f"then {count_of(len(cells), 'winner')} × {seeds} = {runs}"
    known = {cell.id: found for cell in cells if (found := seconds.get(cell.id)) is not None}
    if not known:
        yield "time of both: unknown, for no like run has completed"
        return
    of_search = [known[cell.id] for cell, count in left if cell.id in known for _ in range(count)]
    of_winners = [known[cell.id] for cell in cells if cell.id in known for _ in plan.seeds]
    missing = len({cell.id for cell in cells}) - len(known)
    at_most = " at most" if plan.seed_rule else ""
    yield (
        f"time: the search {in_words(makespan(of_search, at_a_time))} at most, the winners "
        f"{in_words(makespan(of_winners, at_a_time))}{at_most}, with {count_of(at_a_time, 'run')} at a time"
        + (f"; {missing} of {len(templates)} cells are not in it, for no like run has completed" if missing else "")
    )


def _search_of(cell: PlannedCell) -> Tuning:
    assert cell.search is not None
    return cell.search.tuning


def copy_to_dashboard(search: Searching, plan: Plan, database: Database) -> None:
    """Copies the trials that have ended to where optuna-dashboard finds them."""
    # Optuna, which only a search needs.
    from kdx.tune.dashboard import copy_searches

    try:
        copy_searches(database, plan, search)
    except KdxError as error:
        # It shows what was found, and nothing of the search depends on it.
        say(f"note: optuna-dashboard shows no new trials: {error.problem}; {error.hint}")


def winner_lines(search: Searching, plan: Plan) -> Iterator[str]:
    """What each search found, in one line a cell."""
    for cell in plan.cells:
        if cell.search is None:
            continue
        labels = ", ".join(f"{axis} {word}" for axis, word in cell.labels.items()) or cell.id[:8]
        trials = search.trials(cell.search.id)
        ended = ", ".join(f"{count} {state}" for state, count in Counter(one.state for one in trials).items())
        best = search.winner(cell.search.id)
        if best is None:
            yield f"{labels}: no winner of {len(trials)} trials ({ended})"
            continue
        found = ", ".join(f"{name} {value}" for name, value in best.parameters.items())
        metric = cell.spec.selection[0]
        yield f"{labels}: trial {best.number} of {len(trials)} ({ended}): {found}; {metric} {best.value:.4g}"


def _summary(counts: Mapping[str, int], evaluations: Mapping[str, int]) -> str:
    """Return the number of runs in each state, and of evaluations if there are any."""
    summary = f"{count_of(sum(counts.values()), 'run')}: {counts_of(counts)}"
    if evaluations:
        summary += f"; {count_of(sum(evaluations.values()), 'evaluation')}: {counts_of(evaluations)}"
    return summary


def _close(
    counts: Mapping[str, int],
    evaluations: Mapping[str, int],
    sweep: str,
    context: Context,
    options: str,
    failed: int | None,
) -> int:
    """Write the last line of a plan that came to its end, with the next command, and return the exit code.

    Args:
        options: options of a command that computes.
        failed: a run that failed here, whose log is suggested.
    """
    summary = _summary(counts, evaluations)
    if counts.get("failed"):
        logs = f"see why with: {context.command('logs', str(failed))}; " if failed is not None else ""
        say(f"{summary}; {logs}try them again with: {retry_failed(sweep, options)}")
        return FAILED
    if evaluations.get("failed") or evaluations.get("to make"):
        say(f"{summary}; try them again with: {kdx_command('evaluate', sweep, options=f' --failed{options}')}")
        return FAILED
    if counts.get("cancelled"):
        say(f"{summary}; take up again with: {retry_cancelled(sweep, options)}")
        return 0
    say(f"{summary}; next: {context.command('report', sweep)}")
    return 0

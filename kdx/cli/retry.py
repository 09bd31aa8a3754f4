"""`kdx retry`: trains runs again."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli.console import say
from kdx.cli.context import Context, InDatabase
from kdx.cli.named_runs import NamedRuns, named_runs
from kdx.cli.options import ChosenRuns, Components, Hardware, Running, Slurm
from kdx.cli.planned import announce
from kdx.cli.running import FAILED, Runner
from kdx.cli.suggest import computing_options, resume, retry_runs
from kdx.cli.wording import count_of, numbers_of
from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.report.seeds_until import without_unneeded
from kdx.store import reading, recording
from kdx.store.database import Database
from kdx.store.plan_from_records import plan_of
from kdx.store.records import ENDED, FINAL, RunRecord, RunState, SweepRecord
from kdx.sweep.plan_forecast import changed_modules


def retry(
    words: ChosenRuns,
    context: InDatabase,
    at_a_time: Hardware,
    options: Running,
    slurm: Slurm,
    components: Components = None,
    stale: Annotated[
        bool,
        typer.Option(
            "--stale", help="Only finished runs whose code has changed since, and that reports do not exclude."
        ),
    ] = False,
) -> None:
    """Train runs again that failed, were cancelled or are stale.

    A finished run gets a new generation: the same cell and seed, computed anew. Tables show its numbers once it has
    ended; the earlier generation stays in the database. A run that failed, was cancelled or was stopped resumes from
    its last checkpoint. Other runs of the sweep wait for kdx resume, but the jobs of --slurm do them too.

    Example: kdx retry quickstart state=failed
    """
    with context.write() as database:
        named = named_runs(database, words, context)
        if named.whole and not stale:
            allowed = "KEY=VALUE such as state=failed, state=diverged or state=completed; or --stale"
            raise KdxError(f"which runs of `{named.sweep}`? No condition is given", allowed=allowed)
        plans: list[tuple[Plan, list[RunRecord]]] = []
        for name, runs in _by_sweep(database, named, context).items():
            sweep = reading.load_sweep(database, name)
            whole = plan_of(sweep, components)
            if stale:
                changed = _changed(whole, sweep, [run for run in runs if run.invalidated is None])
                runs = [run for run in runs if run.id in changed]
                _report_changed(changed)
            if runs := _without_running(runs, named):
                plans.append((_only(whole, runs), runs))
        wanted = [run for _, runs in plans for run in runs]
        if not wanted:
            say("there is no run to train again")
            return
        _refuse_older(database, wanted, context)
        for plan, _ in plans:
            announce(plan)
            prepare_data(plan)
        again = recording.repeat(database, [run.id for run in wanted if run.state in FINAL])
        reset = recording.reset(database, [run.id for run in wanted], (RunState.FAILED, RunState.CANCELLED))
        done = [count_of(len(again), "new generation")] * bool(again)
        done += [f"{count_of(reset, 'run')} tried again"] * bool(reset)
        if done:
            say(f"note: {', '.join(done)}")
        codes = []
        runner = Runner(database, context, at_a_time, options, slurm, components=components)
        for plan, _ in plans:
            codes.append(runner.do(plan))
            if slurm is not None:
                continue
            if codes[-1] not in (0, FAILED):
                break
            _report_unfinished(database, plan.name, context, components)
        raise typer.Exit(max(codes))


def _by_sweep(database: Database, named: NamedRuns, context: Context) -> dict[str, list[RunRecord]]:
    """Return sweep → its runs; a run named by its number belongs to the most recent sweep that plans it."""
    if named.sweep is not None:
        return {named.sweep: list(named.runs)}
    by_sweep: dict[str, list[RunRecord]] = defaultdict(list)
    for run in named.runs:
        if run.search_id is not None:
            problem = f"run {run.id} is of a trial, and its search counts it as it ended"
            raise KdxError(problem, place=context.db, hint="kdx resume SWEEP resumes a search that is paused")
        sweep = reading.sweep_of(database, run.id)
        if sweep is None:
            problem = f"no sweep plans run {run.id} any more"
            raise KdxError(problem, place=context.db, hint="add its cell and seed to a grid again")
        by_sweep[sweep].append(run)
    return by_sweep


def _changed(plan: Plan, sweep: SweepRecord, runs: Sequence[RunRecord]) -> dict[int, tuple[str, ...]]:
    """Return run id → the modules that have changed since it was computed, for finished runs with any."""
    specs = {cell.id: cell.spec for cell in plan.cells}
    changed = {}
    for run in runs:
        origin = sweep.provenance.get(run.id)
        if run.state in FINAL and origin and (modules := changed_modules(specs[run.cell_id], origin.modules)):
            changed[run.id] = modules
    return changed


def _report_changed(changed: Mapping[int, Sequence[str]]) -> None:
    by_modules: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for run_id, modules in changed.items():
        by_modules[tuple(modules)].append(run_id)
    for modules, ids in by_modules.items():
        say(f"note: the code of {numbers_of('run', ids, 4)} has changed since: {', '.join(modules)}")


def _without_running(runs: list[RunRecord], named: NamedRuns) -> list[RunRecord]:
    """Return the runs of a sweep that no process works on; all runs that were named by their numbers."""
    if named.sweep is None:
        return runs
    idle = [run for run in runs if run.state is not RunState.RUNNING]
    if len(idle) < len(runs):
        say(f"note: {count_of(len(runs) - len(idle), 'run')} left as they are, since a process works on them")
    return idle


def _report_unfinished(database: Database, sweep: str, context: Context, components: Path | None) -> None:
    """Print how to resume the other runs of a sweep, such as those of a cell that was paused, if any are unfinished."""
    if any(run.state not in ENDED for run in without_unneeded(reading.load_sweep(database, sweep)).runs):
        again = resume(sweep, computing_options(context, database, sweep, components))
        say(f"other runs of {sweep} are unfinished; resume them with: {again}")


def _refuse_older(database: Database, runs: Sequence[RunRecord], context: Context) -> None:
    newest = reading.recorded(database, {run.cell_id for run in runs})
    for run in runs:
        if newest[run.key].id != run.id:
            again = retry_runs(context, database, [newest[run.key].id])
            hint = f"{again}, or kdx resume if it is not finished"
            raise KdxError(f"run {run.id} has a newer generation already", place=context.db, hint=hint)


def _only(plan: Plan, runs: Sequence[RunRecord]) -> Plan:
    """Return the plan of these runs alone."""
    keys = {run.key for run in runs}
    cells = {run.cell_id for run in runs}
    seeds = {run.seed for run in runs}
    # The first of several choices with the same cell.
    first = {cell.id: cell for cell in reversed(plan.cells) if cell.id in cells}
    return replace(
        plan,
        cells=tuple(reversed(first.values())),
        seeds=tuple(seed for seed in plan.seeds if seed in seeds),
        tables=(),
        listed=tuple(run for run in plan.runs if run.key in keys),
        seed_rule=None,
    )

"""`kdx retry`: repeats runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of
from kdx.cli.console import say
from kdx.cli.custom_code import announce
from kdx.cli.named_runs import NamedRuns, named_runs
from kdx.cli.options import DATABASE, Components, Db, Files, retry_runs, with_run_options
from kdx.cli.running import FAILED, run_plan
from kdx.data.plan_corpora import prepare_data
from kdx.errors import KdxError
from kdx.grid.plan import Plan
from kdx.run_options import RunOptions
from kdx.store import reading, recording
from kdx.store.database import Database, open_database
from kdx.store.plan_from_records import plan_of
from kdx.store.records import FINAL, RunRecord, RunState, SweepRecord
from kdx.sweep.at_a_time import AtATime
from kdx.sweep.stale import changed_modules


@with_run_options
def retry(
    words: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completion.sweeps_grids_and_runs,
            metavar="RUN…|SWEEP|GRID.yaml [KEY=VALUE]…",
            help="Numbers of runs, as kdx status shows them, or a sweep; of these only those that have KEY=VALUE, such "
            "as state=cancelled.",
        ),
    ],
    db: Db = DATABASE,
    files_in: Files = None,
    at_a_time: AtATime = AtATime(),
    components: Components = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that failed.")] = False,
    diverged: Annotated[
        bool, typer.Option("--diverged", help="Only runs that diverged, but none that was taken out of tables.")
    ] = False,
    stale: Annotated[
        bool,
        typer.Option(
            "--stale",
            help="Only finished runs whose code has changed since they were computed, but none that was taken out of "
            "tables.",
        ),
    ] = False,
    options: RunOptions = RunOptions(),
) -> None:
    """Repeat runs that failed, lost their weights or are stale.

    A finished run gets a new generation: the same cell and seed,
    computed anew. Tables show its numbers once it has ended; the earlier
    generation stays in the database. A run that failed, was cancelled or
    was stopped resumes from its last checkpoint. Of several options a
    run has to fulfil one. A run that kdx invalidate excluded is repeated
    if its number or state=invalidated names it.

    Example: kdx retry 7

    Example: kdx retry quickstart --failed
    """
    states = {RunState.FAILED} if failed else set()
    states |= {RunState.DIVERGED} if diverged else set()
    with open_database(db, write=True) as database:
        named = named_runs(database, words, db)
        if named.whole and not (states or stale):
            allowed = "--failed, --diverged, --stale, or KEY=VALUE such as state=completed"
            raise KdxError(f"which runs of `{named.sweep}` are to be done again is not said", allowed=allowed)
        by_sweep = _by_sweep(database, named, db)
        plans: list[tuple[Plan, list[RunRecord]]] = []
        for name, runs in by_sweep.items():
            sweep = reading.load_sweep(database, name)
            whole = plan_of(sweep, components)
            if states or stale:
                runs = [run for run in runs if run.invalidated is None]
                changed = _changed(whole, sweep, runs) if stale else {}
                runs = [run for run in runs if run.state in states or run.id in changed]
                _say_changed(changed)
            if runs := _without_running(runs, named):
                plans.append((_only(whole, runs), runs))
        wanted = [run for _, runs in plans for run in runs]
        if not wanted:
            say("no run is to be done again")
            return
        _refuse_older(database, wanted, db)
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
        for plan, _ in plans:
            codes.append(run_plan(plan, database, db, at_a_time, options, components=components))
            if codes[-1] not in (0, FAILED):
                break
        raise typer.Exit(codes[-1] if codes[-1] not in (0, FAILED) else max(codes))


def _by_sweep(database: Database, named: NamedRuns, db: str) -> dict[str, list[RunRecord]]:
    """Sweep → its runs; of a run that was named by its number, the last planned sweep that plans it."""
    if named.sweep is not None:
        return {named.sweep: list(named.runs)}
    found: dict[str, list[RunRecord]] = defaultdict(list)
    for run in named.runs:
        sweep = reading.sweep_of(database, run.id)
        if sweep is None:
            problem = f"no sweep plans run {run.id} any more"
            raise KdxError(problem, place=db, hint="add its cell and seed to a grid again")
        found[sweep].append(run)
    return found


def _changed(plan: Plan, sweep: SweepRecord, runs: Sequence[RunRecord]) -> dict[int, tuple[str, ...]]:
    """Run id → the modules that have changed since it was computed, for finished runs of which some have."""
    specs = {cell.id: cell.spec for cell in plan.cells}
    found = {}
    for run in runs:
        origin = sweep.provenance.get(run.id)
        if run.state in FINAL and origin and (modules := changed_modules(specs[run.cell_id], origin.modules)):
            found[run.id] = modules
    return found


def _say_changed(changed: Mapping[int, Sequence[str]]) -> None:
    by_modules: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for run_id, modules in changed.items():
        by_modules[tuple(modules)].append(run_id)
    for modules, ids in by_modules.items():
        runs = f"run {ids[0]}" if len(ids) == 1 else f"{len(ids):,} runs ({', '.join(map(str, ids[:4]))}, …)"
        if 1 < len(ids) <= 4:
            runs = f"runs {', '.join(map(str, ids))}"
        say(f"note: of {runs}, the code has changed since: {', '.join(modules)}")


def _without_running(runs: list[RunRecord], named: NamedRuns) -> list[RunRecord]:
    """Of a sweep, the runs at which nobody works."""
    if named.sweep is None:
        return runs
    idle = [run for run in runs if run.state is not RunState.RUNNING]
    if len(idle) < len(runs):
        say(f"note: {count_of(len(runs) - len(idle), 'run')} left as they are, since a process works at them")
    return idle


def _refuse_older(database: Database, runs: Sequence[RunRecord], db: str) -> None:
    newest = reading.recorded(database, {run.cell_id for run in runs})
    for run in runs:
        if newest[run.cell_id, run.seed].id != run.id:
            again = retry_runs(db, database, [newest[run.cell_id, run.seed].id])
            hint = f"{again}, or kdx resume if it is not finished"
            raise KdxError(f"run {run.id} has a newer generation already", place=db, hint=hint)


def _only(plan: Plan, runs: Sequence[RunRecord]) -> Plan:
    """The plan of these runs alone."""
    keys = frozenset((run.cell_id, run.seed) for run in runs)
    cells = {cell for cell, _ in keys}
    seeds = {seed for _, seed in keys}
    # The first of several choices with the same cell.
    first = {cell.id: cell for cell in reversed(plan.cells) if cell.id in cells}
    return replace(
        plan,
        cells=tuple(reversed(first.values())),
        seeds=tuple(seed for seed in plan.seeds if seed in seeds),
        tables=(),
        only=keys,
        seed_rule=None,
    )

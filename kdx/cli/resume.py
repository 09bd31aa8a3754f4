"""`kdx resume`: continues unfinished runs."""

from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of
from kdx.cli.console import say
from kdx.cli.custom_code import announce
from kdx.cli.named_runs import known_sweep
from kdx.cli.options import (
    DATABASE,
    Components,
    Db,
    Files,
    WithinBudget,
    at_a_time_options,
    in_database,
    in_database_with_components,
    retry_cancelled,
    retry_failed,
    run_options,
    with_options,
)
from kdx.cli.running import FAILED, budget_from_now, search_and_run
from kdx.cli.slurm_options import slurm_options
from kdx.cli.submitting import refuse_budget, submit_workers
from kdx.data.plan_corpora import prepare_data
from kdx.report.seeds_until import without_unneeded
from kdx.run_options import RunOptions
from kdx.shell import kdx_command, shell_word
from kdx.slurm.job_options import JobOptions
from kdx.store import evaluations, reading, recording, searches
from kdx.store.database import open_database
from kdx.store.plan_from_records import plan_of, plan_to_decide_with, with_searches
from kdx.store.records import RunState
from kdx.sweep.at_a_time import AtATime
from kdx.sweep.decide import lacks_evaluations
from kdx.sweep.failing import try_searches_again


@with_options(options=run_options, at_a_time=at_a_time_options, slurm=slurm_options)
def resume(
    sweep: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.sweeps_and_grids,
            metavar="SWEEP|GRID.yaml",
            help="A sweep, or its grid file; every unfinished one if not said.",
        ),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    at_a_time: AtATime = AtATime(),
    components: Components = None,
    failed: Annotated[bool, typer.Option("--failed", help="Try failed runs again, too.")] = False,
    budget: WithinBudget = None,
    options: RunOptions = RunOptions(),
    slurm: JobOptions | None = None,
) -> None:
    """Resume unfinished runs, each from its last checkpoint.

    The exit code is 4 while there are failed runs, since 0 means that all is done.

    Example: kdx resume quickstart

    Example: kdx resume quickstart --budget 90m

    Example: kdx resume quickstart --slurm --jobs 4
    """
    unfinished = {RunState.PENDING, RunState.RUNNING, RunState.INTERRUPTED}
    refuse_budget(slurm, budget)
    limit = budget_from_now(budget)
    codes = []
    with_components = f" --components {shell_word(str(components))}" if components else ""
    again = f"kdx resume --failed{with_components}{in_database(db)}"
    failures: set[int] = set()  # failed runs of sweeps with nothing else to do
    cancelled: dict[str, set[int]] = {}  # command → the cancelled runs that it takes up, of such sweeps
    with open_database(db, write=True) as database:
        sweep = known_sweep(database, sweep, db).name if sweep else None
        for name in [sweep] if sweep else reading.names(database):
            record = reading.load_sweep(database, name)
            if failed:
                recording.reset(database, [each.id for each in record.runs], (RunState.FAILED,))
                evaluations.forget_failed(database, [each.id for each in record.runs])
                record = reading.load_sweep(database, name)
            asked_for = searches.of_sweep(database, record.id)
            if failed:
                try_searches_again(database, [one.id for one in asked_for])
            found = {cell.ordinal for cell in record.cells}
            needed = without_unneeded(record).runs
            searching = any(one.ordinal not in found for one in asked_for)
            over = not unfinished & {each.state for each in needed} and not searching
            asked = record.grid.get("evaluations")
            if over and not (asked and lacks_evaluations(database, plan_to_decide_with(record))):
                failures |= {each.id for each in record.runs if each.state is RunState.FAILED}
                where = in_database_with_components(db, database, name, components)
                if stopped := {each.id for each in needed if each.state is RunState.CANCELLED}:
                    cancelled[retry_cancelled(name, where)] = stopped
                if sweep:
                    again = retry_failed(name, where)
                continue
            plan = plan_of(record, components)
            plan = with_searches(plan, asked_for, components) if searching else plan
            announce(plan)
            prepare_data(plan)
            if slurm is not None:
                submit_workers(plan, database, db, at_a_time, options, slurm)
                codes.append(0)
                continue
            codes.append(search_and_run(plan, database, db, at_a_time, options, budget=limit, components=components)[1])
            if codes[-1] not in (0, FAILED):
                raise typer.Exit(codes[-1])
    named = (sweep,) if sweep else ()
    if failures:
        codes.append(FAILED)
        say(f"{count_of(len(failures), 'run')} failed before; try them again with: {again}")
    elif not codes and cancelled:
        count = len(set().union(*cancelled.values()))
        commands = " && ".join(cancelled)
        what = f"{count:,} cancelled run{'' if count == 1 else 's'}"
        say(f"nothing is unfinished but {what}; take up again with: {commands}")
    elif not codes:
        say(f"nothing is unfinished; next: {kdx_command('report', *named, options=in_database(db))}")
    raise typer.Exit(max(codes, default=0))

"""`kdx resume`: continues unfinished runs."""

from pathlib import Path
from typing import Annotated

import typer

from kdx.cli.beside import BesideRuns
from kdx.cli.console import say, waits_for
from kdx.cli.context import InDatabase
from kdx.cli.named_runs import known_sweep
from kdx.cli.options import Components, Hardware, Limit, Running, Slurm, sweep_argument
from kdx.cli.planned import announce
from kdx.cli.running import FAILED, Runner
from kdx.cli.suggest import computing_options, retry
from kdx.cli.wording import count_of
from kdx.data.plan_corpora import prepare_data
from kdx.grid.plan import Plan
from kdx.report.seeds_until import without_unneeded
from kdx.store import reading
from kdx.store.database import Database
from kdx.store.plan_from_records import plan_of, with_searches
from kdx.store.records import ENDED, RunState
from kdx.sweep.blocked import try_searches_again
from kdx.sweep.decide import lacks_evaluations


def resume(
    context: InDatabase,
    at_a_time: Hardware,
    budget: Limit,
    options: Running,
    slurm: Slurm,
    beside: BesideRuns,
    sweep: Annotated[str | None, sweep_argument("A sweep, or its grid file; default: every unfinished one.")] = None,
    components: Components = None,
) -> None:
    """Resume unfinished runs, each from its last checkpoint.

    The exit code is 4 while there are failed runs, since 0 means that all is done; kdx retry trains them again. A
    search that was paused, since its trials failed alike, tries them again.

    Example: kdx resume quickstart --budget 90m

    Example: kdx resume quickstart --slurm --jobs 4
    """
    codes: list[int] = []
    failed_before: dict[str, set[int]] = {}  # sweep with nothing else to do → its failed runs
    with context.write() as database:
        sweep = known_sweep(database, sweep, context).name if sweep else None
        runner = Runner(database, context, at_a_time, options, slurm, budget, components)
        for name in [sweep] if sweep else reading.names(database):
            plan = _unfinished(database, name, components, failed_before)
            if plan is None:
                continue
            announce(plan)
            waits_for("preparing data")
            prepare_data(plan)
            codes.append(runner.do(plan))
            if codes[-1] not in (0, FAILED):
                raise typer.Exit(codes[-1])
        if failed_before:
            codes.append(FAILED)
            of_sweeps = {name: computing_options(context, database, name, components) for name in failed_before}
            again = " && ".join(retry(RunState.FAILED, *each) for each in of_sweeps.items())
            failed = count_of(len(set().union(*failed_before.values())), "run")
            say(f"{failed} failed before; try them again with: {again}")
        elif not codes:
            say(f"nothing is unfinished; next: {context.command('report', *([sweep] if sweep else []))}")
    raise typer.Exit(max(codes, default=0))


def _unfinished(
    database: Database, name: str, components: Path | None, failed_before: dict[str, set[int]]
) -> Plan | None:
    """Return the plan of a sweep with something to do; None if there is nothing, whose failed runs are collected."""
    record = reading.load_sweep(database, name)
    try_searches_again(database, [search.id for search in record.searches])
    has_ended = {run.state for run in without_unneeded(record).runs} <= ENDED
    if has_ended and not record.lacks_winners and not lacks_evaluations(database, record):
        if failed := {run.id for run in record.runs if run.state is RunState.FAILED}:
            failed_before[name] = failed
        return None
    plan = plan_of(record, components)
    return with_searches(plan, record.searches, components) if record.lacks_winners else plan

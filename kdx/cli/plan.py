"""`kdx plan`: what a sweep would do, run by run, and why."""

from collections import Counter
from typing import Annotated

import typer

from kdx.cli.console import out, out_json, say
from kdx.cli.options import DATABASE, MOST_RUNS, Db, Json, MaxRuns, Seeds, in_database, seeds_of


def plan(
    grid: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped grid.")],
    db: Db = DATABASE,
    seeds: Seeds = None,
    max_runs: MaxRuns = MOST_RUNS,
    json: Json = False,
) -> None:
    """Say what `kdx sweep` would do, run by run, with the reason. Starts nothing and writes no database.

    Example: kdx plan quickstart --seeds 5
    """
    from functools import partial
    from pathlib import Path

    from kdx.grid.load import load_grid
    from kdx.store.database import open_database
    from kdx.store.reader import recorded
    from kdx.sweep.corpora import prepare_data
    from kdx.sweep.decide import decide
    from kdx.sweep.files import files_beside, resume_step
    from kdx.sweep.owner import presence

    wanted = load_grid(grid, seeds=seeds_of(seeds), most_runs=max_runs)
    notes = prepare_data(wanted, large=False)
    records, files = {}, Path()
    if "://" in db or Path(db).exists():
        with open_database(db, write=False) as database:
            records = recorded(database, [cell.id for cell in wanted.cells])
            files = files_beside(database.path)
    decisions = decide(wanted, records, presence, partial(resume_step, files))
    if json:
        out_json(
            [
                {
                    "cell": decision.run.cell.id,
                    "seed": decision.run.seed,
                    "choices": dict(decision.run.cell.labels),
                    "action": decision.action.value,
                    "reason": decision.reason,
                }
                for decision in decisions
            ]
        )
        return
    import shlex

    from kdx.cli.wording import run_name
    from kdx.report.inert import inert

    for decision in decisions:
        out(f"{decision.action.value:8}  {run_name(decision.run)}  ({inert(decision.reason)})")
    for note in notes:
        say(f"note: {note}")
    counts = Counter(decision.action.value for decision in decisions)
    told = ", ".join(f"{count} to {action}" for action, count in counts.items())
    shape = f"{len({cell.id for cell in wanted.cells})} cells × {len(wanted.seeds)} seeds"
    options = f" --seeds {shlex.quote(seeds)}" if seeds else ""
    options += f" --max-runs {max_runs}" if max_runs != MOST_RUNS else ""
    say(f"{len(decisions)} runs of {shape}: {told}; next: kdx sweep {shlex.quote(grid)}{options}{in_database(db)}")

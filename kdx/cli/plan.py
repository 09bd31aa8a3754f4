"""`kdx plan`: shows what a sweep would do, run by run, and why."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kdx.cli.console import out, out_json, say
from kdx.cli.options import (
    DATABASE,
    MOST_RUNS,
    Db,
    Json,
    MaxRuns,
    Replace,
    Seeds,
    Set,
    in_database,
    seeds_of,
    set_words,
)

if TYPE_CHECKING:
    from kdx.grid.difference import Difference


def plan(
    grid: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped grid.")],
    db: Db = DATABASE,
    seeds: Seeds = None,
    set_: Set = None,
    max_runs: MaxRuns = MOST_RUNS,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """Say what `kdx sweep` would do, run by run, with the reason. Starts nothing and writes no database.

    Example: kdx plan quickstart --seeds 5
    """
    from kdx.cli.planned import change_of, leaving
    from kdx.data.plan_corpora import prepare_data
    from kdx.grid.load import load_grid
    from kdx.store.backends import backend_of
    from kdx.store.database import open_database
    from kdx.sweep.decisions import decisions_in

    wanted = load_grid(grid, seeds=seeds_of(seeds), most_runs=max_runs, given=set_ or ())
    notes = prepare_data(wanted, large=False)
    change = None
    if backend_of(db).exists():
        with open_database(db, write=False) as database, database.read():
            change = change_of(database, wanted, grid, db, replaces=replace)
            decisions = decisions_in(database, wanted)
    else:
        decisions = decisions_in(None, wanted)
    if json:
        runs = [
            {
                "cell": decision.run.cell.id,
                "seed": decision.run.seed,
                "choices": dict(decision.run.cell.labels),
                "action": decision.action.value,
                "reason": decision.reason,
                "evaluations": [dict(one.settings) for one in decision.missing],
                "impossible_evaluations": [
                    {"name": asked.name, "settings": asked.settings.asked, "reason": reason}
                    for asked, reason in wanted.impossible_evaluations(decision.run.cell.id)
                ],
            }
            for decision in decisions
        ]
        out_json({"sweep": wanted.name, "runs": runs, "leaving": _leaving(change)})
        return
    import shlex

    from kdx.cli.wording import impossible_evaluations, run_name
    from kdx.sanitize import sanitize
    from kdx.sweep.decide import Action

    for decision in decisions:
        out(f"{decision.action.value:8}  {run_name(decision.run)}  ({sanitize(decision.reason)})")
    for note in (*notes, *impossible_evaluations(wanted), change and leaving(change, wanted, db)):
        if note:
            say(f"note: {note}")
    counts = Counter(decision.action.value for decision in decisions)
    actions = ", ".join(f"{count} to {action}" for action, count in counts.items())
    if to_make := sum(len(decision.missing) for decision in decisions if decision.action is not Action.SKIP):
        actions += f"; {to_make} evaluations to make"
    shape = f"{len({cell.id for cell in wanted.cells})} cells × {len(wanted.seeds)} seeds"
    options = f" --seeds {shlex.quote(seeds)}" if seeds else ""
    options += "".join(f" {shlex.quote(word)}" for word in set_words(set_))
    options += f" --max-runs {max_runs}" if max_runs != MOST_RUNS else ""
    options += " --replace" if replace else ""
    say(f"{len(decisions)} runs of {shape}: {actions}; next: kdx sweep {shlex.quote(grid)}{options}{in_database(db)}")


def _leaving(change: "Difference | None") -> dict[str, Any]:
    """What the newest plan of the sweep has and this one lacks, and why."""
    return {
        "runs": change.runs_gone if change else 0,
        "cells": change.cells_that_lose_runs if change else [],
        "seeds": change.seeds_gone if change else [],
        "changes": [{"field": one.field, "gone": one.gone, "new": one.new} for one in change.changes] if change else [],
    }

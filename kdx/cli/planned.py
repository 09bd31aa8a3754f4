"""What a command says of a plan before it starts.

Whose code it runs, how it differs from the recorded sweep, and what a budget leaves out.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kdx.cli.console import say
from kdx.cli.context import Context
from kdx.cli.wording import choices_of, count_of
from kdx.components.registry import components_of
from kdx.errors import KdxError, did_you_mean
from kdx.grid.difference import Contents, Difference, difference
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedCell
from kdx.sanitize import sanitize
from kdx.store.database import Database
from kdx.store.reading import contents, load_sweep, names
from kdx.store.records import SweepRecord
from kdx.sweep.budget import Budget
from kdx.sweep.covered import Covered, missing_seeds
from kdx.sweep.forecast import in_words
from kdx.tune.search import with_winners


def announce(plan: Plan) -> None:
    """Print whose code runs of the plan will run: a line for each custom component."""
    for component in components_of(plan.components):
        source = component.package or Path(component.folder, component.path).absolute()
        say(f"note: runs the code of {component.axis} {component.word}, from {source} (source {component.sha256[:8]})")


def change_of(database: Database, plan: Plan, grid: str, context: Context) -> Difference | None:
    """Return what planning a grid changes in the sweep of its name; None if there is no such sweep yet.

    Args:
        grid: as the user typed it.

    Raises:
        KdxError: the sweep belongs to another grid: they share no cell and came from different files.
    """
    now = Contents.of(plan)
    before = contents(database, plan.name, known=now.cells)
    if before is None:
        return None
    change = difference(before, now)
    if _are_others(change, before, now):
        raise KdxError(
            f"sweep `{plan.name}` in {context.db} is another grid's ({before.file or 'its file is not known'}):"
            f" the two share no cell ({change})",
            place=grid,
            hint=f"write another `name:` into {grid}, name another database with --db, or remove that sweep, whose runs"
            f" stay: {context.command('rm', plan.name)}",
        )
    return change


def removed_runs(change: Difference | None, plan: Plan, context: Context) -> str | None:
    """Return the message on runs that leave a sweep because its grid was changed; None if no run does."""
    if change is None or not change.runs_gone:
        return None
    runs, cells = count_of(change.runs_gone, "run"), count_of(len(change.cells_that_lose_runs), "cell")
    name = plan.name.replace("'", "''")
    query = context.command("query", f"SELECT * FROM former_runs WHERE sweep = '{name}'")
    single = change.runs_gone == 1
    return (
        f"{runs} of {cells} leave{'s' if single else ''} sweep `{plan.name}` ({change}); nothing is deleted;"
        f" list {'it' if single else 'them'} with: {query}"
    )


def record_of(database: Database, grid: str, context: Context) -> SweepRecord:
    """Return the sweep that a grid file planned, with the present tables, axes and labels of the grid.

    It may have been planned with more seeds than the grid asks for.

    Args:
        grid: as the user typed it.

    Raises:
        KdxError: no sweep of this name is recorded, or it has other cells or lacks seeds.
    """
    plan = with_winners(database, load_grid(grid))
    now = Contents.of(plan)
    before = contents(database, plan.name, known=now.cells)
    run, show = context.command("sweep", grid), context.command("report", plan.name)
    if before is None:
        known = sorted(names(database))
        near = did_you_mean(plan.name, known)
        raise KdxError(
            f"this grid was not swept yet: there is no sweep `{plan.name}` in {context.db}",
            place=grid,
            allowed=known,
            hint=f"{run} computes it{f'; or {near}' if near else ''}",
        )
    record = load_sweep(database, plan.name)
    # The sweep has no cell yet, and no run, where a search that both ask for has no winner.
    searches = {(search.id, search.search["tuning"]["trials"]) for search in record.searches}
    searched = [cell for cell in plan.cells if cell.search]
    open_ = {cell.id for cell in searched if cell.search and (cell.search.id, cell.search.tuning.trials) in searches}
    now = replace(now, cells={id: spec for id, spec in now.cells.items() if id in before.cells or id not in open_})
    change = difference(replace(before, seeds=before.seeds or tuple(record.grid["seeds"])), now)
    tuned = {name for cell in searched if cell.search for name in cell.search.space}
    change = replace(change, changes=tuple(each for each in change.changes if each.field not in tuned))
    if change.gone or change.new or change.seeds_new:
        what = str(change) if change.changes or not searched else "another search"
        only = {"the grid": change.new, "the sweep": change.gone}
        differing = ", ".join(f"{count_of(len(cells), 'cell')} in {side} only" for side, cells in only.items() if cells)
        if _are_others(change, before, now):
            run = f"{run}, under another `name:`,"
        raise KdxError(
            f"sweep `{plan.name}` in {context.db} was not planned from this grid as it is now:"
            f" {f'{differing} ({what})' if differing else what}",
            place=grid,
            hint=f"{run} computes this grid; {show} shows what was planned",
        )
    stored = {cell.id: cell for cell in record.cells}
    return replace(
        record,
        grid={**record.grid, **{part: plan.grid[part] for part in ("tables", "axes", "description", "evaluations")}},
        cells=tuple(
            replace(stored[cell.id], ordinal=cell.ordinal, labels=cell.labels)
            for cell in plan.cells
            if cell.id in stored
        ),
    )


def _are_others(change: Difference, before: Contents, now: Contents) -> bool:
    """Whether the sweep belongs to another grid of the same name, not to an earlier version of this one."""
    return bool(before.cells) and not change.shared and before.file != now.file


MOST_NAMED = 4
"""Cells that a message names; of more it gives the number."""


def what_is_left_out(budget: Budget, covered: Covered, plan: Plan) -> str | None:
    """Return a line on what a budget is enough for, and on the seeds and the cells for which it is not.

    Returns:
        None if there is no run to do.
    """
    of_budget, cells = f"the budget of {budget.text}", len({cell.id for cell in plan.cells})
    if not covered.to_do:
        return None
    if covered.left_out is None or covered.seconds is None:
        like = f" like those of {count_of(len(covered.unknown), 'cell')}" if len(covered.unknown) < cells else ""
        return f"no run{like} has finished yet, so it is unknown what {of_budget} leaves out"
    runs = count_of(len(covered.to_do), "run")
    if not covered.left_out:
        all_runs = "the one run" if len(covered.to_do) == 1 else f"all {runs}"
        lacking = f"; {without_time(covered.evaluations)}" if covered.evaluations else ""
        return f"{of_budget} is enough for {all_runs} to do: about {in_words(covered.seconds)}{lacking}"
    if len(covered.left_out) == len(covered.to_do):
        each = "the one run" if len(covered.to_do) == 1 else f"any of the {runs}"
        return f"{of_budget} is too short for {each} to do"
    missing = "; ".join(_missing(*group, cells) for group in missing_seeds(plan.runs, covered.left_out))
    enough = len(covered.to_do) - len(covered.left_out)
    return sanitize(f"{of_budget} is enough for {enough} of {runs} to do; left out: {missing}")


def without_time(evaluations: int) -> str:
    """Return the remark that evaluations are in no time that is forecast."""
    are = "is not in it, since its" if evaluations == 1 else "are not in it, since their"
    return f"{count_of(evaluations, 'evaluation')} {are} time is not recorded"


def names_of(cells: Sequence[PlannedCell]) -> str:
    """Return the choices of a few cells in brackets; nothing for many."""
    return (
        f" ({', '.join(choices_of(cell.labels, cell.spec.task) for cell in cells)})" if len(cells) <= MOST_NAMED else ""
    )


def _missing(seeds: Sequence[int], lacking: Sequence[PlannedCell], cells: int) -> str:
    all_cells = len(lacking) == cells
    which = "all cells" if all_cells else count_of(len(lacking), "cell")
    names = "" if all_cells else names_of(lacking)
    if not seeds:
        return f"{which} not at all{names}"
    return f"seed{'' if len(seeds) == 1 else 's'} {ranges(seeds)} of {which}{names}"


def ranges(seeds: Sequence[int]) -> str:
    """Return consecutive numbers by their ends: 0, 2–4."""
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    dashes = {1: "", 2: ", "}
    return ", ".join(f"{run[0]}{dashes.get(len(run), '–')}{str(run[-1]) if len(run) > 1 else ''}" for run in runs)

"""What a command says of a grid before it starts: whose code it runs, and how it differs from the recorded sweep."""

from dataclasses import replace
from pathlib import Path

from kdx.cli.console import say
from kdx.cli.context import Context
from kdx.cli.wording import count_of
from kdx.components.registry import components_of
from kdx.errors import KdxError, did_you_mean
from kdx.grid.difference import Contents, Difference, difference
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.store.database import Database
from kdx.store.reading import contents, load_sweep, names
from kdx.store.records import SweepRecord
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
            hint=f"write another `name:` into {grid}, or remove that sweep: {context.command('rm', plan.name)}",
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

"""Compares a grid with the sweep of its name in the database, and describes the differences."""

from dataclasses import replace

from kdx.cli.amounts import count_of
from kdx.cli.options import in_database
from kdx.errors import KdxError, did_you_mean
from kdx.grid.difference import Contents, Difference, difference
from kdx.grid.plan import Plan
from kdx.shell import kdx_command
from kdx.store.database import Database
from kdx.store.reading import contents, load_sweep, names
from kdx.store.records import SweepRecord
from kdx.tune.search import with_winners


def change_of(database: Database, plan: Plan, grid: str, db: str, *, replaces: bool) -> Difference | None:
    """What planning a grid changes in the sweep of its name; None where there is no such sweep yet.

    Args:
        grid: as the user typed it.
        db: as the user typed it.
        replaces: whether the grid may replace the plan of another grid.

    Raises:
        KdxError: the sweep belongs to another grid: they share no cell and came from different files.
    """
    now = Contents.of(plan)
    before = contents(database, plan.name, known=now.cells)
    if before is None:
        return None
    found = difference(before, now)
    if not replaces and _are_others(found, before, now):
        raise KdxError(
            f"sweep `{plan.name}` in {db} is another grid's ({before.file or 'its file is not known'}):"
            f" the two share no cell ({found})",
            place=grid,
            hint=f"write another `name:` into {grid}, or take that one's place with --replace",
        )
    return found


def leaving(found: Difference, plan: Plan, db: str) -> str | None:
    """The message on runs that leave a sweep because its grid was changed; None if no run does."""
    if not found.runs_gone:
        return None
    runs, cells = count_of(found.runs_gone, "run"), count_of(len(found.cells_that_lose_runs), "cell")
    name = plan.name.replace("'", "''")
    query = f"SELECT * FROM former_runs WHERE sweep = '{name}'"
    return (
        f"{runs} of {cells} leave{'s' if found.runs_gone == 1 else ''} sweep `{plan.name}` ({found});"
        f" nothing is deleted: {kdx_command('query', query, options=in_database(db))} shows"
        f" {'it' if found.runs_gone == 1 else 'them'}"
    )


def record_of(database: Database, plan: Plan, grid: str, db: str) -> SweepRecord:
    """The sweep that a grid planned, with the present tables, axes and labels of the grid.

    It may have been planned with more seeds than the grid asks for.

    Args:
        grid: as the user typed it.
        db: as the user typed it.

    Raises:
        KdxError: no sweep of this name is recorded, or it has other cells or lacks seeds.
    """
    plan = with_winners(database, plan)
    now = Contents.of(plan)
    before = contents(database, plan.name, known=now.cells)
    where = in_database(db)
    run, show = kdx_command("sweep", grid, options=where), kdx_command("report", plan.name, options=where)
    if before is None:
        known = sorted(names(database))
        near = did_you_mean(plan.name, known)
        raise KdxError(
            f"this grid was not swept yet: there is no sweep `{plan.name}` in {db}",
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
    found = difference(replace(before, seeds=before.seeds or tuple(record.grid["seeds"])), now)
    tuned = {name for cell in searched if cell.search for name in cell.search.space}
    found = replace(found, changes=tuple(change for change in found.changes if change.field not in tuned))
    if found.gone or found.new or found.seeds_new:
        what = str(found) if found.changes or not searched else "another search"
        only = {"the grid": found.new, "the sweep": found.gone}
        differing = ", ".join(f"{count_of(len(cells), 'cell')} in {side} only" for side, cells in only.items() if cells)
        if _are_others(found, before, now):
            run = f"{run}, under another `name:`,"
        raise KdxError(
            f"sweep `{plan.name}` in {db} was not planned from this grid as it is now:"
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


def _are_others(found: Difference, before: Contents, now: Contents) -> bool:
    """Whether the sweep belongs to another grid of the same name, not to an earlier version of this one."""
    return bool(before.cells) and not found.shared and before.file != now.file

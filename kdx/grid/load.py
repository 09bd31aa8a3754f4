"""Reads a grid file into its plan; reports every fault of the file at once, before anything starts."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kdx.errors import KdxError, Place, by_place, shortened
from kdx.grid import MOST_RUNS
from kdx.grid.cell_selector import settings
from kdx.grid.components import find_components
from kdx.grid.dimensions import named_axes, sub_grids
from kdx.grid.effects import short_of_peak, without_difference, without_effect
from kdx.grid.evaluations import check_evaluations, read_evaluations
from kdx.grid.expand import SubGrid, cells_of, paths
from kdx.grid.extends import extended, set_values, without_removed
from kdx.grid.messages import checked, mapping_of
from kdx.grid.model import ALLOWED_NAME, GRID, SUB_GRID, GridFile, is_sweep_name
from kdx.grid.plan import Plan
from kdx.grid.searches import with_searches
from kdx.grid.seeds import SeedRule
from kdx.grid.shipped import find
from kdx.grid.source import NOTHING_SET, Node, no_value
from kdx.grid.spec import CellSpec
from kdx.grid.table_layout import placed_cells, read_tables, reads_evaluations
from kdx.grid.tuning import Tune


def load_grid(grid: str | Path, *, most_runs: int = MOST_RUNS, given: Sequence[str] = ()) -> Plan:
    """Read a grid, validate it, expand it into cells, check them, and plan their runs.

    Args:
        grid: path of a YAML file, or the name of a shipped one, such as `quickstart`.
        most_runs: refuse a larger product; it is counted before anything is built.
        given: each `key=value` is laid over what the file says, such as `training.steps=100`.

    Raises:
        Faults: everything that is wrong with the grid, in the order of the file.
    """
    path = find(grid)
    faults: list[KdxError] = []
    texts: dict[Path, str] = {}
    root, of_grid, on_top = _read(path, given, texts, faults)
    file, root = _validated(root, path, faults)
    rule, seeds = (file.seeds, file.seeds.seeds) if isinstance(file.seeds, SeedRule) else (None, file.seeds)
    parts = [replace(part, on_top=on_top) for part in sub_grids(root, faults)]
    _refuse_too_many(root, parts, len(seeds), most_runs, faults)
    cells = cells_of(parts, faults)
    faults.extend([*_overruled(root, parts, [fault.place for fault in faults]), *_hidden(root, parts, of_grid)])
    plan = Plan(
        file.name or path.stem,
        tuple(cells),
        seeds,
        axes=tuple(dict.fromkeys(name for part in parts for name in part.axes)),
        description=file.description,
        given=tuple(given),
        file=str(path.resolve()),
        seed_rule=rule,
        evaluations=tuple(read_evaluations(file.evaluations, root.value.get("evaluations"), faults)),
        sources={os.path.relpath(source, path.parent): text for source, text in texts.items()},
    )
    plan = _with_searches(plan, file.tune, root, parts, faults)
    notes = (*short_of_peak(plan.cells), *without_difference(plan.cells), *_replaced(parts))
    plan = replace(plan, notes=notes)
    if not faults:
        faults.extend(check_evaluations(plan.evaluations, {cell.id: cell.spec for cell in plan.cells}.values()))
    if not faults:  # else a cell that is faulty, or a key that is misspelt, may be what makes use of it
        faults.extend(without_effect(plan.cells, path))
    tables = read_tables(file.tables, root.value.get("tables"), lambda: placed_cells(plan), faults)
    plan = replace(plan, tables=tuple(tables))
    if not faults:
        _check_seed_rule(plan, root, faults)
    if faults:
        raise by_place(faults)
    return plan


def _read(path: Path, given: Sequence[str], texts: dict[Path, str], faults: list[KdxError]) -> tuple[Node, Node, Node]:
    """Return the whole grid, and what of the command line it has, and what is laid over every cell."""
    of_grid, of_cells = set_values(given, [])
    root = without_removed(extended(path, faults, texts).overlaid(of_grid))
    if faults_of_components := find_components(root.overlaid(of_cells), GRID):
        # What depends on them would be unknown.
        raise by_place([*faults, *faults_of_components])
    # Now that the options of custom components are known.
    _, of_cells = set_values(given, faults)
    return root, of_grid, of_cells


def _validated(root: Node, path: Path, faults: list[KdxError]) -> tuple[GridFile, Node]:
    """Check the keys of the whole grid; those of its sub-grids are validated once they lie over what they share."""
    for key in ("data", "model", "training", "evaluation"):
        node = root.value.get(key)
        # Also where each task or choice has its own: the schema refuses it there, too.
        if node is not None and node.value is None and not node.replaces:
            faults.append(no_value(key, root.key((key,)), mapping_of(CellSpec, (key,))))
    if "tasks" in root.value and "grids" in root.value:
        problem, place = "`tasks` and `grids` exclude each other", root.key(("grids",))
        faults.append(KdxError(problem, place=place, hint="write `task:` into each of the grids"))
    elif "tasks" in root.value and "task" in root.value:
        faults.append(KdxError("`task` and `tasks` exclude each other", place=root.key(("task",)), hint="keep one"))
    if "name" not in root.value and not is_sweep_name(path.stem):
        problem = f"the file's name, `{shortened(path.stem)}`, cannot be the grid's name"
        faults.append(KdxError(problem, place=root.place, allowed=ALLOWED_NAME, hint="write a `name:`"))
    in_sub_grids = {*settings(), *SUB_GRID}
    file, sound = checked(GridFile, root.only(root.value.keys() - in_sub_grids), faults, named_axes(root))
    # What is wrong here leaves no sub-grid, rather than one without a task.
    none = {key: Node(root.place, {}) for key in ("tasks", "grids") if key in root.value}
    return file, replace(root, value=root.only(in_sub_grids).value | none | sound.value)


def _refuse_too_many(root: Node, parts: Sequence[SubGrid], seeds: int, most_runs: int, faults: list[KdxError]) -> None:
    """Refuse a product that is too large, before anything is built.

    Raises:
        Faults: there are too many runs.
    """
    runs = sum(part.size for part in parts) * seeds
    if runs > most_runs:
        place = root.key(("axes",)) if "axes" in root.value else root.place
        taken = ", those that conditions take out among them" if any(part.conditions for part in parts) else ""
        allowed, hint = f"at most {most_runs:,}", "see --max-runs"
        faults.append(KdxError(f"{runs:,} runs{taken}", place=place, allowed=allowed, hint=hint))
        raise by_place(faults)


def _overruled(root: Node, parts: Sequence[SubGrid], wrong: Sequence[Place | str | None]) -> Iterator[KdxError]:
    """Yield a fault for each axis over a factor that the command line sets: the axis would be without effect.

    Args:
        wrong: places of other faults, whose values are not repeated.
    """
    for name, on_top in {name: part.on_top for part in parts for name in part.axes}.items():
        if (node := on_top.inner(name.split("."))) is not None:
            choice = "CHOICE" if node.place in wrong else shortened(node)
            paths = [(*path, "axes", name) for path in (*_paths_of_parts(root), ())]
            axis = next((".".join(path) for path in paths if root.inner(path) is not None), None)
            if axis is not None:
                hint = f"--set {axis}=[{choice}] takes one choice"
            else:
                hint = "--set tasks.NAME=null takes a task out" if name == "task" else "change the zip in the file"
            yield KdxError(f"`{name}` varies on an axis", place=node.place, hint=hint)


def _paths_of_parts(root: Node) -> Iterator[tuple[str, str]]:
    """Yield the path of each of `tasks:` or `grids:`."""
    for key in ("tasks", "grids"):
        yield from ((key, name) for name in (root.value[key].value if key in root.value else ()))


def _hidden(root: Node, parts: Sequence[SubGrid], of_grid: Node) -> Iterator[KdxError]:
    """Yield a fault for each key that the command line sets for all sub-grids or choices where these have their own."""
    shared = of_grid.only(SUB_GRID)
    for path in _paths_of_parts(root):
        for hidden in dict.fromkeys(_in_both(shared, root.inner(path) or NOTHING_SET)):
            key, place = ".".join(hidden), shared.at(hidden)
            hint = f"--set {'.'.join(path)}.{key}=…"
            yield KdxError(f"{'.'.join(path)} has its own `{key}`, which counts there", place=place, hint=hint)
    dimensions = {each.name: each for part in parts for each in part.dimensions} if "preset" in shared.value else {}
    for axis, dimension in dimensions.items():
        if dimension.bundles and all(bundle.preset for bundle in dimension.bundles):
            problem, hint = f"every choice of {axis} has its own `preset`, which counts there", "change those"
            yield KdxError(problem, place=shared.at(("preset",)), hint=hint)


def _in_both(lower: Node, upper: Node) -> Iterator[tuple[str, ...]]:
    """Yield the paths, of at most two keys, of what `upper` hides in `lower`."""
    for name, below in lower.value.items():
        above = upper.value.get(name)
        if above is None:
            continue
        if isinstance(below.value, dict) and isinstance(above.value, dict):
            yield from ((name, *path[:1]) for path in _in_both(below, above))
        else:
            yield (name,)


def _replaced(parts: Sequence[SubGrid]) -> Iterator[str]:
    """Yield a note for each factor that the command line sets over named choices: their words say another value."""
    choices: dict[tuple[str, str], dict[str, None]] = {}
    for part in parts:
        for dimension in part.dimensions:
            for bundle in dimension.bundles:
                for name in sorted((paths(bundle.settings) & paths(part.on_top)).difference(dimension.names)):
                    choices.setdefault((name, dimension.name), {})[bundle.labels[dimension.name]] = None
    for (name, axis), (first, *others) in choices.items():
        yield f"--set replaces the `{name}` of {axis} {first}{f' and {len(others)} more' if others else ''}"


def _with_searches(plan: Plan, tune: Tune | None, root: Node, parts: Sequence[SubGrid], faults: list[KdxError]) -> Plan:
    """Return the plan with a search for each cell where the grid tunes parameters, and there is no fault yet."""
    if tune is None or faults:
        return plan
    varied = {name for part in parts for dimension in part.dimensions for name in dimension.decides}
    varied |= {name for part in parts for name in paths(part.on_top)}
    node = root.value["tune"]
    cells = with_searches(plan.cells, tune, node, seeds=plan.seeds, varied=varied, faults=faults)
    return replace(plan, cells=tuple(cells))


def _check_seed_rule(plan: Plan, root: Node, faults: list[KdxError]) -> None:
    """Refuse a rule of seeds without a baseline that a table of test scores declares."""
    if plan.seed_rule is None:
        return
    if not any(table.baseline and not (plan.evaluations and reads_evaluations(table)) for table in plan.tables):
        faults.append(
            KdxError(
                f"until: {plan.seed_rule.until} needs a baseline to compare with, and no table of test scores declares "
                "one",
                place=root.value["seeds"].at(("until",)),
                hint="write `baseline:` into a table",
            )
        )

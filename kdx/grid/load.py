"""From a grid file to its plan; every fault of the file at once, before anything starts."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kdx.errors import FaultList, KdxError, Place, by_place, shortened
from kdx.grid.cell_selector import factors
from kdx.grid.components import find_parts
from kdx.grid.dimensions import sub_grids
from kdx.grid.expand import SubGrid, cells_of, paths
from kdx.grid.extends import extended
from kdx.grid.grid_keys import GRID
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.priorities import with_priorities
from kdx.grid.read_evaluations import check_evaluations, read_evaluations
from kdx.grid.read_seeds import check_seed_rule, check_sources, read_seeds
from kdx.grid.read_tables import check_tables, labelled_cells, layouts_of, read_tables, table_of_ablation
from kdx.grid.read_tune import read_tune
from kdx.grid.set_values import set_values
from kdx.grid.settings import check_keys, settings
from kdx.grid.shipped import find, folder
from kdx.grid.source import Node
from kdx.grid.sweep_name import ALLOWED, is_sweep_name
from kdx.grid.table_layout import leaves
from kdx.grid.words import known_options, owners
from kdx.tasks import TASKS
from kdx.tasks.corpora import options_of_corpora

MOST_RUNS = 10_000
MOST_VALUES = 1000
"""Values that a grid may set in a cell, on average, before it has more cells than it may have runs."""


def load_grid(
    grid: str | Path, *, seeds: Sequence[int] | None = None, most_runs: int = MOST_RUNS, given: Sequence[str] = ()
) -> Plan:
    """Read a grid and expand it.

    Args:
        grid: path of a YAML file, or the name of a shipped one, such as `quickstart`.
        seeds: replace the grid's own.
        most_runs: refuse a larger product; it is counted before anything is built.
        given: each `key=value` is laid over what the file says, such as `training.steps=100`.

    Raises:
        Faults: everything that is wrong with the grid, in the order of the file.
    """
    path = find(grid)
    faults = FaultList()
    of_grid, of_cells = set_values(given, FaultList())
    texts: dict[Path, str] = {}
    root = extended(path, faults, texts).overlaid(of_grid)
    if faults_of_parts := find_parts(root if of_cells is None else root.overlaid(of_cells), GRID):
        # What depends on them would be told as unknown.
        raise by_place([*faults, *faults_of_parts])
    # Now that the options of custom components are known.
    _, of_cells = set_values(given, faults)
    check_keys(root, (*GRID, *settings()), faults)
    faults.extend(_empty_sections(root))
    chosen, seed_rule = (tuple(seeds), None) if seeds is not None else read_seeds(root.value.get("seeds"), faults)
    parts = [replace(part, on_top=of_cells) for part in sub_grids(root, faults)]
    runs = sum(part.size for part in parts) * len(chosen)
    if runs > most_runs:
        place = root.key(("axes",)) if "axes" in root.value else root.place
        taken = ", those that conditions take out among them" if any(list(part.conditions) for part in parts) else ""
        faults.append(
            KdxError(f"{runs:,} runs{taken}", place=place, allowed=f"at most {most_runs:,}", hint="see --max-runs")
        )
        raise by_place(faults)
    values = sum(part.values for part in parts)
    if values > MOST_VALUES * most_runs:
        problem = f"{values:,} values, those of each cell counted anew"
        faults.append(KdxError(problem, place=root.place, allowed=f"at most {MOST_VALUES * most_runs:,}"))
        raise by_place(faults)
    if of_cells is not None:
        _refuse_overruled(of_cells, parts, faults)
    cells = cells_of(parts, faults)
    axes = dict.fromkeys(name for part in parts for dimension in part.dimensions for name in dimension.names)
    if not faults:
        named = [axis for axis in axes if axis not in factors()]
        settled = paths(of_cells.plain()) if of_cells is not None else ()
        cells = with_priorities(cells, root.value.get("first"), named, settled, faults)
        decided = {name for part in parts for one in part.dimensions for name in one.decides} | {*settled}
        cells = read_tune(root.value.get("tune"), cells, seeds=chosen, axes=named, varied=decided, faults=faults)
    tasks = dict.fromkeys(cell.spec.task for cell in cells)
    evaluations = read_evaluations(root.value.get("evaluations"), tasks or TASKS, faults)
    if not faults:
        check_evaluations(evaluations, cells, faults)
    faults.extend(_without_effect(cells, path))
    faults.extend(_not_taken(cells, path))
    plan = Plan(
        _name(root, path, faults),
        tuple(cells),
        chosen,
        (),
        tuple(axes),
        _text(root, "description", "", faults),
        file=str(path.resolve()),
        evaluations=tuple(evaluations),
        seed_rule=seed_rule,
        notes=tuple(_short_of_peak(cells)),
        sources={os.path.relpath(file, path.parent): text for file, text in texts.items()},
    )
    tables = read_tables(root, lambda: labelled_cells(plan), faults)
    baselines = {one.name: one.baseline for part in parts for one in part.dimensions if one.baseline is not None}
    if "tables" not in root.value and baselines:
        varied = [name for name in plan.axes if len({cell.labels.get(name) for cell in cells}) > 1]
        try:
            tables = [(table_of_ablation(axis, word, varied), root) for axis, word in baselines.items()]
        except KdxError as error:
            faults.append(KdxError(error.problem, place=root.key(("ablate",)), hint=error.hint))
    plan = replace(plan, tables=tuple(table for table, _ in tables))
    if tables and not faults:
        check_tables(tables, layouts_of(plan), faults)
    if not faults:
        check_seed_rule(plan, root, faults)
    if not faults and seeds is None:
        check_sources(plan, root, faults)
    if faults:
        raise by_place(faults)
    return plan


def _refuse_overruled(given: Node, parts: Sequence[SubGrid], faults: list[KdxError]) -> None:
    """What is set in every cell, and varies on an axis: the axis would be without effect."""
    for name in dict.fromkeys(name for part in parts for one in part.dimensions for name in one.names):
        node: Node | None = given
        for step in name.split("."):
            node = node.value.get(step) if node is not None and isinstance(node.value, dict) else None
        if node is not None:
            hint = f"--set axes.{name}=[{shortened(node)}] takes one choice"
            faults.append(KdxError(f"`{name}` varies on an axis", place=node.place, hint=hint))


def _short_of_peak(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """A note where runs end within their warm-up."""
    searched = {"training.steps", "training.warmup"}  # a template has a value that no trial need have
    settled = [cell.spec.training for cell in cells if cell.search is None or searched.isdisjoint(cell.search.space)]
    short = [training for training in settled if training.steps < training.warmup]
    if short:
        # Where several cells do, one stands for all.
        worst = min(short, key=lambda training: training.steps / training.warmup)
        where = "" if len(short) == len(cells) else f" in {len(short)} of {len(cells)} cells"
        yield (
            f"the learning rate never reaches its peak{where}: it ends at {100 * worst.steps // worst.warmup}%,"
            f" as training.steps is {worst.steps} and training.warmup {worst.warmup}"
        )


def _empty_sections(root: Node) -> Iterator[KdxError]:
    """Sections without a value, also where each task or choice has its own: the schema refuses them there, too."""
    for key in ("data", "model", "training", "evaluation"):
        node = root.value.get(key)
        if node is not None and node.value is None and not node.replaces:
            yield KdxError(f"`null` as {key}", place=node.place, allowed="a mapping")


def _without_effect(cells: Sequence[PlannedCell], path: Path) -> Iterator[KdxError]:
    """Options that this very file writes, and that no cell has; what it extends, and a preset, may have more."""
    if path.parent == folder() / "presets":
        return
    nodes = {id(node): node for cell in cells for node in cell.settings}
    used = {name for cell in cells for name in cell.spec.options}
    used |= {f"data.{name}" for cell in cells for name in cell.spec.data.options}
    written: dict[str, Place] = {}
    for node in nodes.values():
        written |= {name: node.key((name,)) for name in node.value if name in known_options()}
        data = node.value.get("data")
        if data is not None and isinstance(data.value, dict):
            written |= {f"data.{name}": data.key((name,)) for name in data.value if name in options_of_corpora()}
    for name, place in written.items():
        if name not in used and (place.file == str(path) or not place.line):
            problem = f"`{name}` has no effect: no cell has a word that takes it"
            yield KdxError(problem, place=place, allowed=f"with {', '.join(owners(name))}", hint="remove it")


def _not_taken(cells: Sequence[PlannedCell], path: Path) -> Iterator[KdxError]:
    """Settings of a section that this very file writes, and that every cell has otherwise: nothing in it uses them."""
    nodes: dict[int, dict[str, tuple[Place, Any]]] = {}
    taken: set[tuple[Place, str]] = set()
    faults: dict[tuple[Place, str], KdxError] = {}
    for cell in cells:
        last: dict[str, tuple[Place, Any]] = {}  # what another setting replaces is no fault
        for node in cell.settings:
            if id(node) not in nodes:
                nodes[id(node)] = dict(_in_sections(node))
            last |= nodes[id(node)]
        unsettled = [(key, *written) for key, written in last.items() if (written[0], key) not in taken]
        resolved = dict(leaves(cell.spec.model_dump(mode="json", by_alias=True))) if unsettled else {}
        for key, place, value in unsettled:
            # What a search chooses may use a setting that the template does not.
            if cell.search is not None or resolved.get(key) == value:
                taken.add((place, key))
            elif place.file == str(path) or not place.line:
                problem = f"`{key}: {shortened(value)}` has no effect: every cell has {shortened(resolved.get(key))}"
                faults[place, key] = KdxError(problem, place=place, hint=_instead(key, value, resolved))
    yield from (fault for at, fault in faults.items() if at not in taken)


def _in_sections(node: Node) -> Iterator[tuple[str, tuple[Place, Any]]]:
    for key, value in leaves(node.plain()):
        of_a_word = key.removeprefix("data.") in options_of_corpora()
        # `shared` stands for `tied` where there are only two embeddings.
        if "." in key and key in factors() and value is not None and not of_a_word and key != "model.embeddings":
            yield key, (node.key(tuple(key.split("."))), value)


def _instead(key: str, value: Any, resolved: Mapping[str, Any]) -> str:
    other = {"model.encoder_layers": "decoder_layers", "model.decoder_layers": "encoder_layers"}.get(key)
    return f"write {other}: {shortened(value)}" if other and resolved[f"model.{other}"] else "remove it"


def _text(root: Node, key: str, default: str, faults: list[KdxError]) -> str:
    node = root.value.get(key)
    if node is None:
        return default
    if not isinstance(node.value, str) or not node.value.strip():
        faults.append(KdxError(f"`{node}` is no {key}", place=node.place, allowed="a short text"))
        return default
    return node.value


def _name(root: Node, path: Path, faults: list[KdxError]) -> str:
    """The grid's own name, or that of its file."""
    if root.value.get("name") is None:
        if not is_sweep_name(path.stem):
            problem = f"the file's name, `{shortened(path.stem)}`, cannot be the grid's name"
            faults.append(KdxError(problem, place=root.place, allowed=ALLOWED, hint="write a `name:`"))
        return path.stem
    name = _text(root, "name", "", faults)
    if name and not is_sweep_name(name):
        problem = f"`{shortened(name)}` cannot be the name of a sweep"
        faults.append(KdxError(problem, place=root.value["name"].place, allowed=ALLOWED))
    return name

"""From a grid file to its plan; every fault of the file at once, before anything starts.

An axis is a factor with a list of values, or a name of its own with a mapping of named choices, each of which sets
several factors, as an approach does. A preset lies under all that the grid sets; that of a task, an approach or a named
choice takes the place of the grid's.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kdx.data.corpora import options_of_corpora
from kdx.definitions import cached_over_words
from kdx.errors import FaultList, Faults, KdxError, Place, by_place, did_you_mean
from kdx.grid.cell_selector import factors
from kdx.grid.expand import Bundle, Dimension, SubGrid, cells_of
from kdx.grid.faults import located
from kdx.grid.own_parts import find_parts
from kdx.grid.plan import Plan, PlannedCell, TableSpec
from kdx.grid.read_evaluations import check_evaluations, read_evaluations
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.shipped import find, folder, names
from kdx.grid.source import LARGEST_FILE, LONGEST_KEY, Node, read, shortened
from kdx.grid.spec import CellSpec
from kdx.grid.table_layout import LayoutBuilder, evaluated, reads_evaluations
from kdx.grid.words import known_options, owners
from kdx.tasks import TASKS

MOST_RUNS = 10_000
MOST_VALUES = 1000
"""Values that a grid may set in a cell, on average, before it has more cells than it may have runs."""
MOST_FILES = 20
"""Grids that extend each other."""
MOST_AXES = 100
MOST_TABLES = 100
LONGEST_NAME = 100  # characters
_SUB_GRID = ("axes", "approaches", "preset")
_GRID = ("name", "description", "extends", "seeds", "tables", "evaluations", "tasks", *_SUB_GRID)


@cached_over_words
def settings() -> tuple[str, ...]:
    """Every key that a cell can have at its top."""
    return (*CellSpec.model_fields, *known_options())


def load_grid(grid: str | Path, *, seeds: Sequence[int] | None = None, most_runs: int = MOST_RUNS) -> Plan:
    """Read a grid and expand it.

    Args:
        grid: path of a YAML file, or the name of a shipped one, such as `quickstart`.
        seeds: replace the grid's own.
        most_runs: refuse a larger product; it is counted before anything is built.

    Raises:
        Faults: everything that is wrong with the grid, in the order of the file.
    """
    path = find(grid)
    faults = FaultList()
    root = _extended(path, faults)
    if faults_of_parts := find_parts(root, _GRID):
        # What depends on them would be told as unknown.
        raise by_place([*faults, *faults_of_parts])
    _known_keys(root, (*_GRID, *settings()), faults)
    chosen = tuple(seeds) if seeds is not None else _seeds(root, faults)
    sub_grids = _sub_grids(root, faults)
    runs = sum(sub_grid.size for sub_grid in sub_grids) * len(chosen)
    if runs > most_runs:
        place = root.key(("axes",)) if "axes" in root.value else root.place
        faults.append(KdxError(f"{runs:,} runs", place=place, allowed=f"at most {most_runs:,}", hint="see --max-runs"))
        raise by_place(faults)
    values = sum(sub_grid.values for sub_grid in sub_grids)
    if values > MOST_VALUES * most_runs:
        problem = f"{values:,} values, those of each cell counted anew"
        faults.append(KdxError(problem, place=root.place, allowed=f"at most {MOST_VALUES * most_runs:,}"))
        raise by_place(faults)
    tables = _tables(root, faults)
    cells = cells_of(sub_grids, faults)
    tasks = dict.fromkeys(cell.spec.task for cell in cells)
    evaluations = read_evaluations(root.value.get("evaluations"), tasks or TASKS, faults)
    if not faults:
        check_evaluations(evaluations, cells, faults)
    faults.extend(_without_effect(cells, path))
    name = _name(root, path, faults)
    description = _text(root, "description", "", faults)
    axes = dict.fromkeys(dimension.name for sub_grid in sub_grids for dimension in sub_grid.dimensions)
    plan = Plan(
        name,
        tuple(cells),
        chosen,
        tuple(table for table, _ in tables),
        tuple(axes),
        description,
        file=str(path.resolve()),
        evaluations=tuple(evaluations),
    )
    if tables and not faults:
        _check_tables(plan, tables, faults)
    if faults:
        raise by_place(faults)
    return plan


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
        if name not in used and place.file == str(path):
            problem = f"`{name}` has no effect: no cell has a word that takes it"
            yield KdxError(problem, place=place, allowed=f"with {', '.join(owners(name))}", hint="remove it")


def _extended(path: Path, faults: list[KdxError]) -> Node:
    """The file over those that it extends: mappings merge key by key, anything else replaces."""
    nodes: list[Node] = []
    seen: set[Path] = set()
    left = LARGEST_FILE
    while True:
        node = read(path, faults, most=left)
        left -= path.stat().st_size
        nodes.append(node)
        seen.add(path.resolve())
        if "extends" not in node.value:
            break
        path = _parent(node.value["extends"], path, seen)
    root = nodes.pop()
    for node in reversed(nodes):
        base = Node(node.place, {key: value for key, value in root.value.items() if key != "name"}, root.keys)
        values = {key: value for key, value in node.value.items() if key != "extends"}
        root = base.overlaid(Node(node.place, values, node.keys))
    return root


def _parent(parent: Node, child: Path, seen: set[Path]) -> Path:
    """The file that `extends:` names.

    Raises:
        Faults: there is none, it was seen before, or it is one too many.
    """
    if not isinstance(parent.value, str):
        raise Faults([KdxError(f"`{parent}` is no path of a grid", place=parent.place)])
    try:
        found = find(parent.value, child.parent)
    except Faults as error:
        hint = error.faults[0].hint
        raise Faults([KdxError(f"cannot extend `{parent}`: no such grid", place=parent.place, hint=hint)]) from error
    if found.resolve() in seen:
        raise Faults([KdxError("a grid that extends itself", place=parent.place, hint="remove `extends:`")])
    if len(seen) == MOST_FILES:
        allowed = f"at most {MOST_FILES} of them"
        raise Faults([KdxError("too many grids that extend each other", place=parent.place, allowed=allowed)])
    return found


def _known_keys(node: Node, known: Iterable[str], faults: list[KdxError], *, what: str = "key") -> None:
    known = tuple(known)
    for key in node.value:
        if key not in known:
            problem, place = f"unknown {what} `{shortened(key)}`", node.key((key,))
            faults.append(KdxError(problem, place=place, allowed=known, hint=did_you_mean(key, known)))


def _text(root: Node, key: str, default: str, faults: list[KdxError]) -> str:
    node = root.value.get(key)
    if node is None:
        return default
    if not isinstance(node.value, str) or not node.value.strip() or (key == "name" and len(node.value) > LONGEST_NAME):
        faults.append(KdxError(f"`{node}` is no {key}", place=node.place, allowed="a short text"))
        return default
    return node.value


def _name(root: Node, path: Path, faults: list[KdxError]) -> str:
    """The grid's own name, or that of its file."""
    # Only a name that is not written out can have signs that are no text: the reader lets none through.
    unfit = any(unicodedata.category(sign) in ("Cs", "Cc") for sign in path.stem)
    if root.value.get("name") is None and (unfit or len(path.stem) > LONGEST_NAME):
        problem = f"the file's name, `{shortened(path.stem)}`, cannot be the grid's name"
        faults.append(KdxError(problem, place=root.place, hint="write a `name:`"))
    return _text(root, "name", path.stem, faults)


def _seeds(root: Node, faults: list[KdxError]) -> tuple[int, ...]:
    node = root.value.get("seeds")
    if node is None:
        return (0,)
    value = node.plain()
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000:
        return tuple(range(value))
    right = isinstance(value, list) and value and all(type(seed) is int and 0 <= seed < 2**32 for seed in value)
    if right and len(set(value)) == len(value):
        return tuple(value)
    allowed = "a number of seeds, or a list of different whole numbers from 0"
    faults.append(KdxError(f"`{node}` are no seeds", place=node.place, allowed=allowed))
    return (0,)


def _mapping(node: Node | None, faults: list[KdxError], what: str) -> dict[str, Node]:
    """A mapping's entries; one whose value is null was taken out by an extending grid."""
    if node is None:
        return {}
    if not isinstance(node.value, dict):
        faults.append(KdxError(f"`{node}` under `{what}`", place=node.place, allowed="a mapping"))
        return {}
    for key, inner in node.value.items():
        if inner.value is None and not inner.replaces:
            problem = f"`{shortened(key)}` under `{what}` is empty, and takes nothing out of an extended grid"
            faults.append(KdxError(problem, place=node.key((key,)), hint="write what it is, or remove the line"))
    return {key: inner for key, inner in node.value.items() if inner.value is not None}


def _sub_grids(root: Node, faults: list[KdxError]) -> list[SubGrid]:
    """One for each of `tasks:`, or the grid itself."""
    if "tasks" not in root.value:
        return [_sub_grid(root, (), faults)]
    tasks = _mapping(root.value["tasks"], faults, "tasks")
    if "task" in root.value:
        faults.append(KdxError("`task` and `tasks` exclude each other", place=root.key(("task",)), hint="keep one"))
    if not tasks:
        faults.append(KdxError("`tasks` is empty", place=root.value["tasks"].place, allowed=tuple(TASKS)))
    shared = Node(root.place, {k: v for k, v in root.value.items() if k in (*settings(), *_SUB_GRID)}, root.keys)
    sub_grids = []
    for task, node in tasks.items():
        key_place = root.value["tasks"].key((task,))
        if task not in TASKS:
            hint = did_you_mean(task, TASKS)
            faults.append(KdxError(f"unknown task `{shortened(task)}`", place=key_place, allowed=TASKS, hint=hint))
            continue
        if not isinstance(node.value, dict):
            faults.append(KdxError(f"`{node}` under task `{task}`", place=node.place, allowed="a mapping"))
            continue
        _known_keys(node, (*settings(), *_SUB_GRID), faults)
        whole = shared.overlaid(node)
        named = Node(whole.place, {**whole.value, "task": Node(key_place, task)}, whole.keys)
        choice = Bundle(task, Node(node.place, {}))
        sub_grids.append(_sub_grid(named, (Dimension("task", (choice,)),), faults))
    return sub_grids


def _sub_grid(node: Node, first: tuple[Dimension, ...], faults: list[KdxError]) -> SubGrid:
    base = _settings(node)
    task = base.value.get("task")
    try:
        preset = _preset(node, task)
    except KdxError as error:
        faults.append(error)
        return SubGrid(base, (Dimension("preset", ()),))
    task = task or (preset and preset.value.get("task"))
    dimensions = []
    approaches = _mapping(node.value.get("approaches"), faults, "approaches")
    if approaches:
        dimensions.append(Dimension("approach", _bundles(approaches, "approach", task, faults)))
    axes = node.value.get("axes")
    listed = []
    for name, choices in _mapping(axes, faults, "axes").items():
        assert axes is not None
        key = axes.key((name,))
        if isinstance(choices.value, dict) and name not in factors():
            if dimension := _named(name, choices, key, task, faults):
                dimensions.append(dimension)
        elif dimension := _factor(name, choices, key, faults):
            dimensions.append(dimension)
            listed.append(name)
    if axes is not None and len(dimensions) > MOST_AXES:
        faults.append(KdxError(f"{len(dimensions):,} axes", place=axes.place, allowed=f"at most {MOST_AXES}"))
        return SubGrid(base, (Dimension("axes", ()),))
    _refuse_overruled(listed, dimensions, faults)
    return SubGrid(base, (*first, *dimensions), preset)


def _settings(node: Node) -> Node:
    return Node(node.place, {key: value for key, value in node.value.items() if key in settings()}, node.keys)


def _named(name: str, choices: Node, key: Place, task: Node | None, faults: list[KdxError]) -> Dimension | None:
    """An axis by names, from the mapping of its choices."""
    if name in (*_GRID, *settings(), "approach"):
        hint = "an axis over a factor has a list, such as training.steps: [100, 200]"
        faults.append(KdxError(f"`{name}` as the name of an axis", place=key, allowed="a word of its own", hint=hint))
        return None
    chosen = _mapping(choices, faults, name)
    if not chosen:
        faults.append(KdxError(f"axis `{name}` has no choices", place=key, allowed="at least one"))
    return Dimension(name, _bundles(chosen, name, task, faults))


def _bundles(choices: dict[str, Node], what: str, task: Node | None, faults: list[KdxError]) -> tuple[Bundle, ...]:
    """Named choices, each a mapping of settings and, where it names one, the preset under them."""
    bundles = []
    for name, choice in choices.items():
        if not isinstance(choice.value, dict):
            faults.append(KdxError(f"`{choice}` as {what}", place=choice.place, allowed="a mapping"))
            continue
        _known_keys(choice, (*settings(), "preset"), faults)
        try:
            bundles.append(Bundle(name, _settings(choice), _preset(choice, task)))
        except KdxError as error:
            faults.append(error)
    return tuple(bundles)


def _preset(node: Node, task: Node | None) -> Node | None:
    """The settings of the preset that `node` names, a grid under `presets/`; None where it names none.

    Raises:
        KdxError: there is no such preset, or it is for another task.
    """
    name = node.value.get("preset")
    if name is None:
        return None
    known = tuple(grid.removeprefix("presets/") for grid in names() if grid.startswith("presets/"))
    if name.value not in known:
        hint = did_you_mean(str(name.value), known)
        raise KdxError(f"unknown preset `{name}`", place=name.place, allowed=known, hint=hint)
    root = _shipped_preset(name.value)
    preset = Node(node.place, _settings(root).value, root.keys)
    other = preset.value.get("task")
    if task and other and task.value != other.value:
        problem = f"preset `{name}` is for {other}, not for {task}"
        raise KdxError(problem, place=name.place, hint="take another preset")
    return preset


@cache
def _shipped_preset(name: str) -> Node:
    return _extended(find(f"presets/{name}"), [])


def _factor(name: str, choices: Node, key: Place, faults: list[KdxError]) -> Dimension | None:
    """An axis over one factor, from the list of its choices."""
    path = tuple(name.split("."))
    known = factors()
    if name not in known:
        problem = f"unknown axis `{shortened(name)}`"
        faults.append(KdxError(problem, place=key, allowed=known, hint=did_you_mean(name, known)))
        return None
    if not isinstance(choices.value, list) or not choices.value:
        problem = f"`{choices}` as the choices of `{name}`"
        faults.append(KdxError(problem, place=choices.place, allowed="a list of at least one value"))
        return None
    bundles = []
    for choice in choices.value:
        wrapped = choice
        for step in reversed(path):
            wrapped = Node(choice.place, {step: wrapped}, {step: choice.place})
        label = _label(choice.plain())
        if len(label) > LONGEST_KEY:
            problem, allowed = f"`{shortened(label)}` has {len(label):,} characters", f"at most {LONGEST_KEY}"
            hint = "give it a name: an axis may be a mapping of named choices"
            faults.append(KdxError(problem, place=choice.place, allowed=allowed, hint=hint))
        bundles.append(Bundle(label, wrapped))
    for label, choice in _repeated([bundle.label for bundle in bundles], choices.value):
        faults.append(KdxError(f"`{shortened(label)}` stands twice on axis `{name}`", place=choice.place))
    return Dimension(name, tuple(bundles))


def _refuse_overruled(listed: Sequence[str], dimensions: Sequence[Dimension], faults: list[KdxError]) -> None:
    """A named choice and an axis that set the same factor: one would be without effect."""
    for name in listed:
        path = tuple(name.split("."))
        for dimension in dimensions:
            for bundle in dimension.bundles if dimension.name not in listed else ():
                if _holds(bundle.settings, path):
                    problem = f"axis `{name}` would overrule {dimension.name} `{bundle.label}`"
                    place = bundle.settings.key((path[0],))
                    hint = f"take `{name}` out of the axes or out of the {dimension.name}"
                    faults.append(KdxError(problem, place=place, hint=hint))


def _holds(node: Node, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(node.value, dict) or step not in node.value:
            return False
        node = node.value[step]
    return True


def _label(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(_label(inner) for inner in value) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _tables(root: Node, faults: list[KdxError]) -> list[tuple[TableSpec, Node]]:
    node = root.value.get("tables")
    if node is None:
        return []
    if not isinstance(node.value, list) or not node.value:
        faults.append(KdxError(f"`{node}` under `tables`", place=node.place, allowed="a list of tables"))
        return []
    if len(node.value) > MOST_TABLES:
        problem = f"{len(node.value):,} tables"
        faults.append(KdxError(problem, place=node.place, allowed=f"at most {MOST_TABLES}"))
        return []
    tables = []
    for inner in node.value:
        try:
            plain = inner.plain()
            if isinstance(plain, dict):
                for key in ("rows", "columns"):
                    if isinstance(plain.get(key), str):
                        plain[key] = [plain[key]]
            tables.append((TableSpec.model_validate(plain), inner))
        except ValidationError as error:
            faults.extend(located(error, inner, TableSpec))
    for name, inner in _repeated([table.name for table, _ in tables], [inner for _, inner in tables]):
        faults.append(KdxError(f"two tables named `{shortened(name)}`", place=inner.at(("name",))))
    return tables


def _check_tables(plan: Plan, tables: Sequence[tuple[TableSpec, Node]], faults: list[KdxError]) -> None:
    """Lays the cells out as each table asks, and its evaluations where it asks for these."""
    own = [(cell.labels, ResolvedSpec.of(cell.spec)) for cell in plan.cells]
    read = [
        evaluated(cell.labels, spec, one)
        for cell, (_, spec) in zip(plan.cells, own, strict=True)
        for one in plan.evaluations_of(cell.id)
    ]
    builders = {False: LayoutBuilder(own), True: LayoutBuilder(read)}
    for table, node in tables:
        try:
            builders[bool(read) and reads_evaluations(table)].build(table)
        except KdxError as error:
            faults.append(KdxError(error.problem, place=node.place, allowed=error.allowed, hint=error.hint))


def _repeated(words: Sequence[str], nodes: Sequence[Node]) -> Iterator[tuple[str, Node]]:
    """Each word that stood before, with its node."""
    seen: set[str] = set()
    for word, node in zip(words, nodes, strict=True):
        if word in seen:
            yield word, node
        seen.add(word)

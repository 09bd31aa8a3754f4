"""What varies in a grid: its axes, approaches, ablation, zipped factors and sub-grids, as dimensions of a product.

An axis is a factor with a list or a range of values, or a name of its own with a mapping of named choices, each of
which sets several factors, as an approach does. A preset lies under all that the grid sets; that of a task, an approach
or a named choice takes the place of the grid's.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError
from itertools import product
from typing import Any

from kdx.errors import KdxError, Place, shortened
from kdx.grid.cell_selector import factors, plain_number
from kdx.grid.conditions import MOST_CONDITIONS, Condition, ConditionReader
from kdx.grid.expand import Bundle, Dimension, Override, SubGrid, in_order, paths
from kdx.grid.extends import preset_of
from kdx.grid.grid_keys import GRID, SUB_GRID
from kdx.grid.ranges import is_range, numbers_of
from kdx.grid.settings import (
    at_path,
    check_keys,
    is_taken_out,
    list_of,
    mapping_of,
    settings,
    settings_by_factor,
    settings_of,
)
from kdx.grid.source import LONGEST_KEY, Node
from kdx.grid.synonyms import did_you_mean
from kdx.grid.table_layout import leaves
from kdx.tasks import TASKS

MOST_AXES = 100
LARGEST_CHOICE = 10_000
"""Combinations of the axes that a choice has of its own."""
ABLATION, BASELINE = "ablation", "baseline"
"""The axis that `ablate` makes, and the choice on it that changes nothing."""


@dataclass(frozen=True)
class _Varied:
    """A sub-grid whose conditions are not read yet, for they may name the axes of all sub-grids."""

    node: Node
    base: Node
    dimensions: tuple[Dimension, ...]
    conditions: dict[str, Node]
    """Axis → the condition under which it varies."""
    preset: Node | None = None
    own: Dimension | None = None
    """The one that names the sub-grid, where there are several."""


def sub_grids(root: Node, faults: list[KdxError]) -> list[SubGrid]:
    """One for each of `tasks:` or of `grids:`, or the grid itself."""
    found: list[KdxError] = []
    varied = _all_varied(root, found)
    axes = dict.fromkeys(name for part in varied for one in part.dimensions for name in one.names)
    reader = ConditionReader([name for name in axes if name not in factors()], found)
    whole = [_sub_grid(one, varied, reader, found) for one in varied]
    # What sub-grids share is looked at in each of them.
    faults.extend({str(fault): fault for fault in found}.values())
    return whole


def _all_varied(root: Node, faults: list[KdxError]) -> list[_Varied]:
    varied = [key for key in ("tasks", "grids") if not is_taken_out(root.value.get(key))]
    if len(varied) == 2:
        problem, place = "`tasks` and `grids` exclude each other", root.key(("grids",))
        faults.append(KdxError(problem, place=place, hint="write `task:` into each of the grids"))
        return []
    if not varied:
        return [_varied(root, (), faults)]
    key = varied[0]
    parts = mapping_of(root.value[key], faults, key)
    if key == "tasks" and "task" in root.value:
        faults.append(KdxError("`task` and `tasks` exclude each other", place=root.key(("task",)), hint="keep one"))
    if not parts:
        allowed = tuple(TASKS) if key == "tasks" else "a mapping of names to sub-grids"
        faults.append(KdxError(f"`{key}` is empty", place=root.value[key].place, allowed=allowed))
    shared = Node(root.place, {k: v for k, v in root.value.items() if k in (*settings(), *SUB_GRID)}, root.keys)
    found = []
    for name, part in parts.items():
        place = root.value[key].key((name,))
        if key == "tasks" and name not in TASKS:
            hint = did_you_mean(name, TASKS)
            faults.append(KdxError(f"unknown task `{shortened(name)}`", place=place, allowed=TASKS, hint=hint))
            continue
        if not isinstance(part.value, dict):
            problem = f"`{part}` under {key.removesuffix('s')} `{shortened(name)}`"
            faults.append(KdxError(problem, place=part.place, allowed="a mapping"))
            continue
        check_keys(part, (*settings(), *SUB_GRID), faults)
        whole = shared.overlaid(part)
        if key == "tasks":
            whole = Node(whole.place, {**whole.value, "task": Node(place, name)}, whole.keys)
        first = Dimension(key.removesuffix("s"), (Bundle(name, Node(part.place, {})),))
        found.append(_varied(whole, (first,), faults))
    return found


def _varied(node: Node, first: tuple[Dimension, ...], faults: list[KdxError]) -> _Varied:
    base = settings_of(node)
    task = base.value.get("task")
    try:
        preset = preset_of(node, task)
    except KdxError as error:
        faults.append(error)
        return _Varied(node, base, (Dimension("preset", ()),), {})
    task = task or (preset and preset.value.get("task"))
    dimensions = []
    if approaches := mapping_of(node.value.get("approaches"), faults, "approaches"):
        dimensions.append(Dimension("approach", _bundles(approaches, "approach", task, faults)))
    axes = node.value.get("axes")
    conditions = {}
    for name, choices in mapping_of(axes, faults, "axes").items():
        assert axes is not None
        if (found := _axis(name, choices, axes.key((name,)), task, faults)) is not None:
            dimensions.append(found)
            if isinstance(choices.value, dict) and "when" in choices.value:
                conditions[name] = choices.value["when"]
    for item in list_of(node.value.get("zip"), faults, "zip", most=MOST_AXES):
        if (found := _zipped(item, faults)) is not None:
            dimensions.append(found)
    # The changes come last, and so lie over all that they are changes of.
    if (dimension := _ablation(node.value.get("ablate"), task, faults)) is not None:
        dimensions.append(dimension)
    if len(dimensions) > MOST_AXES:
        place = (axes or node).place
        faults.append(KdxError(f"{len(dimensions):,} axes", place=place, allowed=f"at most {MOST_AXES}"))
        return _Varied(node, base, (Dimension("axes", ()),), {})
    _refuse_twice((*first, *dimensions), node, faults)
    return _Varied(node, base, (*first, *dimensions), conditions, preset, next(iter(first), None))


def _sub_grid(varied: _Varied, others: Sequence[_Varied], reader: ConditionReader, faults: list[KdxError]) -> SubGrid:
    node = varied.node
    dimensions = [
        replace(one, when=reader.read(varied.conditions[one.name])) if one.name in varied.conditions else one
        for one in varied.dimensions
    ]
    try:
        in_order(dimensions)
    except CycleError as error:
        names = error.args[1][:-1]
        problem = f"axis `{names[0]}` depends on itself"
        if len(names) > 1:
            problem = f"the axes {', '.join(f'`{name}`' for name in names)} depend on each other"
        faults.append(KdxError(problem, place=varied.conditions[names[0]].place, hint="name other factors"))
        dimensions = [replace(one, when=None) for one in dimensions]
    return SubGrid(
        varied.base,
        tuple(dimensions),
        varied.preset,
        exclude=_conditions(node.value.get("exclude"), "exclude", reader, faults),
        overrides=_overrides(node.value.get("overrides"), dimensions, reader, faults),
        include=_included(node.value.get("include"), dimensions, varied.own, others, faults),
    )


def _axis(name: str, choices: Node, key: Place, task: Node | None, faults: list[KdxError]) -> Dimension | None:
    if isinstance(choices.value, dict) and "when" in choices.value:
        for other in choices.value:
            if other not in ("values", "when"):
                problem, place = f"unknown key `{shortened(other)}` on axis `{name}`", choices.key((other,))
                faults.append(KdxError(problem, place=place, allowed=("values", "when")))
        if "values" not in choices.value:
            allowed = "a list, or a range" if name in factors() else "a mapping of named choices"
            faults.append(KdxError(f"axis `{name}` has no `values`", place=choices.place, allowed=allowed))
            return None
        choices = choices.value["values"]
    if isinstance(choices.value, dict) and name not in factors():
        return _named(name, choices, key, task, faults)
    return _factor(name, choices, key, faults)


def _named(name: str, choices: Node, key: Place, task: Node | None, faults: list[KdxError]) -> Dimension | None:
    """An axis by names, from the mapping of its choices."""
    if not name.strip() or name in (*GRID, *settings(), "approach", "grid", "not", ABLATION):
        hint = "an axis over a factor has a list, such as training.steps: [100, 200]"
        faults.append(KdxError(f"`{name}` as the name of an axis", place=key, allowed="a word of its own", hint=hint))
        return None
    chosen = mapping_of(choices, faults, name)
    if not chosen:
        faults.append(KdxError(f"axis `{name}` has no choices", place=key, allowed="at least one"))
    return Dimension(name, _bundles(chosen, name, task, faults))


def _bundles(choices: dict[str, Node], what: str, task: Node | None, faults: list[KdxError]) -> tuple[Bundle, ...]:
    """Named choices, each a mapping of settings and, where it names one, the preset under them.

    A choice may have axes of its own; then it is one bundle for each combination of them.
    """
    bundles = []
    for name, choice in choices.items():
        if not isinstance(choice.value, dict):
            faults.append(KdxError(f"`{choice}` as {what}", place=choice.place, allowed="a mapping"))
            continue
        check_keys(choice, (*settings(), "preset", "axes"), faults)
        try:
            whole = Bundle(name, settings_of(choice), preset_of(choice, task))
        except KdxError as error:
            faults.append(error)
            continue
        axes = choice.value.get("axes")
        inner = []
        for axis, values in mapping_of(axes, faults, "axes").items():
            assert axes is not None
            if (found := _factor(axis, values, axes.key((axis,)), faults)) is not None:
                inner.append(found)
        bundles += _with_axes(whole, inner, axes, faults)
    return tuple(bundles)


def _with_axes(whole: Bundle, inner: Sequence[Dimension], axes: Node | None, faults: list[KdxError]) -> list[Bundle]:
    count = 1
    for dimension in inner:
        count *= len(dimension.bundles)
    if count > LARGEST_CHOICE:
        assert axes is not None
        problem = f"{count:,} combinations of the axes of `{shortened(whole.label)}`"
        faults.append(KdxError(problem, place=axes.place, allowed=f"at most {LARGEST_CHOICE:,}"))
        return []
    names = [dimension.name for dimension in inner]
    return [
        replace(whole, inner=dict(zip(names, chosen, strict=True)))
        for chosen in product(*(dimension.bundles for dimension in inner))
    ]


def _factor(name: str, choices: Node, key: Place, faults: list[KdxError]) -> Dimension | None:
    """An axis over one factor, from the list or the range of its choices."""
    known = factors()
    if name not in known:
        problem = f"unknown axis `{shortened(name)}`"
        faults.append(KdxError(problem, place=key, allowed=known, hint=did_you_mean(name, known)))
        return None
    values = _values(name, choices, faults)
    bundles = []
    for choice in values:
        label = _label(choice.plain())
        if len(label) > LONGEST_KEY:
            problem, allowed = f"`{shortened(label)}` has {len(label):,} characters", f"at most {LONGEST_KEY}"
            hint = "give it a name: an axis may be a mapping of named choices"
            faults.append(KdxError(problem, place=choice.place, allowed=allowed, hint=hint))
        bundles.append(Bundle(label, at_path(name.split("."), choice)))
    seen: set[str] = set()
    for bundle, choice in zip(bundles, values, strict=True):
        if (word := plain_number(bundle.label)) in seen:
            faults.append(KdxError(f"`{shortened(bundle.label)}` stands twice on axis `{name}`", place=choice.place))
        seen.add(word)
    return Dimension(name, tuple(bundles)) if values else None


def _values(name: str, choices: Node, faults: list[KdxError]) -> list[Node]:
    if is_range(choices):
        try:
            return numbers_of(choices)
        except KdxError as error:
            faults.append(error)
            return []
    if not isinstance(choices.value, list) or not choices.value:
        allowed = "a list of at least one value, or a range such as {from: 100, to: 500, step: 100}"
        faults.append(KdxError(f"`{choices}` as the choices of `{name}`", place=choices.place, allowed=allowed))
        return []
    return choices.value


def _zipped(item: Node, faults: list[KdxError]) -> Dimension | None:
    """Factors that vary together: the first choice of each, then the second, and so on."""
    columns = [
        found for name, choices in item.value.items() if (found := _factor(name, choices, item.key((name,)), faults))
    ]
    if len(columns) < len(item.value):
        return None
    lengths = {column.name: len(column.bundles) for column in columns}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        faults.append(KdxError(f"a zip of unequal lengths: {counts}", place=item.place, allowed="as many of each"))
        return None
    first, *others = columns
    bundles = []
    for one, *beside in zip(*(column.bundles for column in columns), strict=True):
        bundles.append(replace(one, inner={column.name: bundle for column, bundle in zip(others, beside, strict=True)}))
    return Dimension(first.name, tuple(bundles))


def _ablation(node: Node | None, task: Node | None, faults: list[KdxError]) -> Dimension | None:
    """The baseline, and each single change of it: a mapping of names to settings, or a list of settings.

    None where there is none, as where an extending grid took it out.
    """
    if node is None or is_taken_out(node):
        return None
    if not node.value:
        faults.append(KdxError("`ablate` is empty", place=node.place, allowed="at least one change"))
        return None
    baseline = Bundle(BASELINE, Node(node.place, {}))
    if isinstance(node.value, dict):
        changes = mapping_of(node, faults, "ablate")
        if BASELINE in changes:
            problem, place = f"`{BASELINE}` as a change", node.key((BASELINE,))
            faults.append(KdxError(problem, place=place, hint="it is what the grid sets anyway; remove it"))
        for name, change in changes.items():
            if not isinstance(change.value, dict) and name in factors():
                problem, hint = f"`{name}` as the name of a change", f"write a list: [{name}: {change}]"
                faults.append(KdxError(problem, place=node.key((name,)), allowed="a word of its own", hint=hint))
            if isinstance(change.value, dict) and "axes" in change.value:
                problem, place = f"axes in the change `{shortened(name)}`", change.key(("axes",))
                faults.append(KdxError(problem, place=place, hint="write a change for each of their values"))
        changes = {name: one for name, one in changes.items() if isinstance(one.value, dict) or name not in factors()}
        return Dimension(ABLATION, (baseline, *_bundles(changes, "change", task, faults)), baseline=BASELINE)
    bundles = [baseline]
    for item in list_of(node, faults, "ablate", most=MOST_AXES):
        if (changed := _by_factor(item, faults)) is None:
            continue
        label = ", ".join(f"{name} = {_label(value)}" for name, value in leaves(changed.plain()))
        if any(label == bundle.label for bundle in bundles):
            faults.append(KdxError(f"`{shortened(label)}` stands twice under `ablate`", place=item.place))
        bundles.append(Bundle(label, changed))
    return Dimension(ABLATION, tuple(bundles), baseline=BASELINE)


def _refuse_twice(dimensions: Sequence[Dimension], node: Node, faults: list[KdxError]) -> None:
    """Two axes that set the same factor: one would be without effect."""
    owners: dict[str, Dimension] = {}
    for dimension in dimensions:
        for name in dimension.names:
            if name in owners and owners[name] is not dimension:
                problem = f"`{name}` varies twice, in {owners[name].name} and in {dimension.name}"
                faults.append(KdxError(problem, place=_place_of(dimension, node), hint="keep one of them"))
            owners[name] = dimension
    for name, owner in owners.items():
        if name not in factors():
            continue
        path = name.split(".")
        for dimension in dimensions:
            if dimension is owner or name in dimension.names or name not in dimension.decides:
                continue
            for bundle in dimension.bundles:
                if bundle.settings.inner(path) is not None:
                    problem = f"axis `{name}` and {dimension.name} `{bundle.label}` both set `{name}`"
                    place = bundle.settings.key((path[0],))
                    hint = f"take `{name}` out of the axes or out of the {dimension.name}"
                    faults.append(KdxError(problem, place=place, hint=hint))


def _place_of(dimension: Dimension, node: Node) -> Place:
    """Where an axis is written, or the grid that it is in."""
    if node.inner(("axes", dimension.name)) is not None:
        return node.key(("axes", dimension.name))
    return node.key(("zip",) if "zip" in node.value else ("approaches",))


def _conditions(node: Node | None, what: str, reader: ConditionReader, faults: list[KdxError]) -> tuple[Condition, ...]:
    found = map(reader.read, list_of(node, faults, what, most=MOST_CONDITIONS))
    return tuple(condition for condition in found if condition is not None)


def _overrides(
    node: Node | None, dimensions: Sequence[Dimension], reader: ConditionReader, faults: list[KdxError]
) -> tuple[Override, ...]:
    """`- {when: condition, set: settings}`"""
    found = []
    axes = {name for dimension in dimensions for name in dimension.names}
    for item in list_of(node, faults, "overrides", most=MOST_CONDITIONS):
        check_keys(item, ("when", "set"), faults)
        missing = [key for key in ("when", "set") if key not in item.value]
        if missing:
            problem = f"an override without `{missing[0]}`"
            faults.append(KdxError(problem, place=item.place, allowed="{when: {kernel: rbf}, set: {warmup: 400}}"))
            continue
        condition, given = reader.read(item.value["when"]), item.value["set"]
        if not isinstance(given.value, dict) or not given.value:
            faults.append(KdxError(f"`{given}` under `set`", place=given.place, allowed="a mapping of settings"))
            continue
        over = _by_factor(given, faults)
        for name in sorted(axes & paths(over.plain())) if over is not None else ():
            problem, hint = f"an override of `{name}`, which varies on an axis", "exclude and include combinations"
            faults.append(KdxError(problem, place=given.place, hint=hint))
        if condition is not None and over is not None:
            found.append(Override(condition, over))
    return tuple(found)


def _by_factor(node: Node, faults: list[KdxError], axes: Collection[str] = ()) -> Node | None:
    """Settings as a grid nests them, or by factor.

    Args:
        axes: keys that stand beside them.
    """
    before = len(faults)
    check_keys(node, (*axes, *dict.fromkeys((*settings(), *factors()))), faults)
    given = Node(node.place, {key: value for key, value in node.value.items() if key not in axes}, node.keys)
    for key in given.value:
        section, _, name = key.rpartition(".")
        if section and given.inner((section, name)) is not None:
            problem = f"`{key}` is set twice, also under `{section}`"
            faults.append(KdxError(problem, place=node.key((key,)), hint="keep one of them"))
    return settings_by_factor(given) if len(faults) == before else None


def _included(
    node: Node | None,
    dimensions: Sequence[Dimension],
    own: Dimension | None,
    others: Sequence[_Varied],
    faults: list[KdxError],
) -> tuple[tuple[Bundle, ...], ...]:
    """Combinations beside the product: the choice on each named axis, and whatever else is set, by factor.

    One that names its task or its grid is for that sub-grid alone.
    """
    found = []
    parts = {part.own.bundles[0].label: part for part in others if part.own is not None}
    named = {one.name: one for one in dimensions if one.name not in factors() and one is not own}
    for item in list_of(node, faults, "include", most=MOST_CONDITIONS):
        before = len(faults)
        chosen = [*own.bundles] if own is not None and own.name not in factors() else []
        if own is not None and own.name in item.value:
            part = str(item.value[own.name].plain())
            if part not in parts:
                problem, place = f"unknown {own.name} `{shortened(part)}`", item.value[own.name].place
                faults.append(KdxError(problem, place=place, allowed=parts, hint=did_you_mean(part, parts)))
            if part != own.bundles[0].label:
                continue
        rest = _by_factor(item, faults, [*named, *([own.name] if own is not None else [])])
        for name, dimension in named.items():
            # The axes that a choice has of its own are set like any other factor.
            choices = {bundle.label: replace(bundle, inner={}) for bundle in dimension.bundles}
            if name not in item.value:
                problem = f"an included combination without a choice of `{name}`"
                faults.append(KdxError(problem, place=item.place, allowed=tuple(choices)))
            elif (label := str(item.value[name].plain())) not in choices:
                problem, place = f"unknown {name} `{shortened(label)}`", item.value[name].place
                faults.append(KdxError(problem, place=place, allowed=choices, hint=did_you_mean(label, choices)))
            else:
                chosen.append(choices[label])
        if len(faults) == before and rest is not None:
            found.append((*chosen, Bundle("", rest)))
    return tuple(found)


def _label(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(_label(inner) for inner in value) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

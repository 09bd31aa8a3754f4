"""What varies in a grid: its axes, approaches, ablation, zipped factors and sub-grids, as dimensions of a product.

An axis is a factor with a list or a range of values, or a name of its own with a mapping of named choices, each of
which sets several factors, as an approach does. A preset lies under all that the grid sets; that of a task, an approach
or a named choice takes the place of the grid's. A zip is an axis whose choices set several factors, an ablation one
with a baseline, and an included combination a sub-grid of one cell.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError
from itertools import product
from math import prod
from typing import Any

from kdx.errors import KdxError, Place, shortened
from kdx.grid.cell_selector import factors, plain_number
from kdx.grid.conditions import ConditionReader
from kdx.grid.expand import Bundle, Dimension, Override, SubGrid, in_order, paths
from kdx.grid.extends import preset_of
from kdx.grid.messages import checked
from kdx.grid.model import ABLATION, BASELINE, SUB_GRID
from kdx.grid.model import SubGrid as SubGridModel
from kdx.grid.ranges import Range, is_range
from kdx.grid.settings import at_path, check_keys, settings, settings_by_factor, settings_of, without_removed
from kdx.grid.source import LONGEST_KEY, Node
from kdx.grid.synonyms import did_you_mean
from kdx.grid.table_layout import leaves

LARGEST_CHOICE = 10_000
"""Combinations of the axes that a choice has of its own."""


@dataclass(frozen=True)
class _Part:
    """A sub-grid whose conditions are not read yet, for they may name the axes of all sub-grids."""

    node: Node
    dimensions: tuple[Dimension, ...]
    preset: Node | None = None
    own: Dimension | None = None
    """The one that names the sub-grid, where there are several."""


def sub_grids(root: Node, faults: list[KdxError]) -> list[SubGrid]:
    """One for each of `tasks:` or of `grids:`, or the grid itself; one more for each included combination."""
    found: list[KdxError] = []
    parts = list(_parts(root, found))
    axes = dict.fromkeys(name for part in parts for dimension in part.dimensions for name in dimension.names)
    # A name that a faulty axis would have is not known, so conditions are judged only in a grid without such faults.
    reader = ConditionReader([name for name in axes if name not in factors()], [] if found else found)
    whole = [sub_grid for part in parts for sub_grid in _with_conditions(part, parts, reader, found)]
    # What sub-grids share is looked at in each of them.
    faults.extend({str(fault): fault for fault in found}.values())
    return whole


def _parts(root: Node, faults: list[KdxError]) -> Iterator[_Part]:
    key = next((key for key in ("tasks", "grids") if key in root.value), None)
    if key is None:
        yield _part(root, None, faults)
    else:
        shared = Node(root.place, {k: v for k, v in root.value.items() if k in (*settings(), *SUB_GRID)}, root.keys)
        for name, part in root.value[key].value.items():
            place = root.value[key].key((name,))
            if not isinstance(part.value, dict):
                problem = f"`{part}` under {key.removesuffix('s')} `{shortened(name)}`"
                faults.append(KdxError(problem, place=part.place, allowed="a mapping"))
                continue
            whole = without_removed(shared.overlaid(part))
            if key == "tasks":
                whole = Node(whole.place, {**whole.value, "task": Node(place, name)}, whole.keys)
            own = Dimension(key.removesuffix("s"), (Bundle(name, Node(part.place, {})),))
            yield _part(whole, own, faults)


def _part(node: Node, own: Dimension | None, faults: list[KdxError]) -> _Part:
    if own is not None:
        check_keys(node, (*settings(), *SUB_GRID), faults)
    _, node = checked(SubGridModel, node, faults)
    first = (own,) if own else ()
    try:
        preset = preset_of(node, node.value.get("task"))
    except KdxError as error:
        faults.append(error)
        return _Part(node, (Dimension("preset", ()),))
    task = node.value.get("task") or (preset and preset.value.get("task"))
    dimensions = [*first, *_dimensions(node, task, faults)]
    _refuse_twice(dimensions, node, faults)
    return _Part(node, tuple(dimensions), preset, own)


def _dimensions(node: Node, task: Node | None, faults: list[KdxError]) -> Iterator[Dimension]:
    if "approaches" in node.value:
        yield Dimension("approach", _bundles(node.value["approaches"], "approach", task, faults))
    for name, choices in _entries(node.value.get("axes")):
        key = node.value["axes"].key((name,))
        condition = choices.value.get("when") if isinstance(choices.value, dict) else None
        choices = choices.value["values"] if condition else choices
        by_factor = name in factors() or not isinstance(choices.value, dict) or is_range(choices.plain())
        dimension = _factor(name, choices, key, faults) if by_factor else _named(name, choices, key, task, faults)
        if dimension is not None:
            yield replace(dimension, written_when=condition)
    for item in _items(node.value.get("zip")):
        if (dimension := _zipped(item, faults)) is not None:
            yield dimension
    # The changes come last, and so lie over all that they are changes of.
    if "ablate" in node.value:
        yield _ablation(node.value["ablate"], task, faults)


def _entries(node: Node | None) -> list[tuple[str, Node]]:
    return list(node.value.items()) if node is not None else []


def _items(node: Node | None) -> list[Node]:
    """The items of a list; a mapping that stands alone is a list of one."""
    return [] if node is None else node.value if isinstance(node.value, list) else [node]


def _with_conditions(
    part: _Part, parts: Sequence[_Part], reader: ConditionReader, faults: list[KdxError]
) -> Iterator[SubGrid]:
    dimensions = [
        replace(dimension, when=reader.read(dimension.written_when)) if dimension.written_when else dimension
        for dimension in part.dimensions
    ]
    try:
        in_order(dimensions)
    except CycleError as error:
        names = error.args[1][:-1]
        problem = f"axis `{names[0]}` depends on itself"
        if len(names) > 1:
            problem = f"the axes {', '.join(f'`{name}`' for name in names)} depend on each other"
        place = next(one.written_when.place for one in dimensions if one.name == names[0] and one.written_when)
        faults.append(KdxError(problem, place=place, hint="name other factors"))
        dimensions = [replace(dimension, when=None) for dimension in dimensions]
    excluded = [reader.read(item) for item in _items(part.node.value.get("exclude"))]
    whole = SubGrid(
        settings_of(part.node),
        tuple(dimensions),
        part.preset,
        exclude=tuple(condition for condition in excluded if condition is not None),
        overrides=tuple(_overrides(part.node, dimensions, reader, faults)),
    )
    yield whole
    for bundles in _included(part, parts, faults):
        single = tuple(Dimension(name, (bundle,)) for name, bundle in bundles.items())
        yield replace(whole, dimensions=single, exclude=(), named=whole.axes)


def _named(name: str, choices: Node, key: Place, task: Node | None, faults: list[KdxError]) -> Dimension | None:
    """An axis by names, from the mapping of its choices."""
    if not choices.value:
        faults.append(KdxError(f"axis `{name}` has no choices", place=key, allowed="at least one"))
    return Dimension(name, _bundles(choices, name, task, faults))


def _bundles(choices: Node, what: str, task: Node | None, faults: list[KdxError]) -> tuple[Bundle, ...]:
    """Named choices, each a mapping of settings and, where it names one, the preset under them.

    A choice may have axes of its own; then it is one bundle for each combination of them.
    """
    bundles: list[Bundle] = []
    for name, choice in choices.value.items():
        check_keys(choice, (*settings(), "preset", "axes"), faults)
        try:
            whole = Bundle(name, settings_of(choice), preset_of(choice, task))
        except KdxError as error:
            faults.append(error)
            continue
        axes = choice.value.get("axes")
        columns = [_factor(axis, values, axes.key((axis,)), faults) for axis, values in _entries(axes)]
        inner = [dimension for dimension in columns if dimension is not None]
        count = prod(len(dimension.bundles) for dimension in inner)
        if count > LARGEST_CHOICE:
            problem = f"{count:,} combinations of the axes of `{shortened(name)}`"
            faults.append(KdxError(problem, place=axes.place, allowed=f"at most {LARGEST_CHOICE:,}"))
            continue
        names = [dimension.name for dimension in inner]
        for chosen in product(*(dimension.bundles for dimension in inner)):
            bundles.append(replace(whole, inner=dict(zip(names, chosen, strict=True))))
    return tuple(bundles)


def _factor(name: str, choices: Node, key: Place, faults: list[KdxError]) -> Dimension | None:
    """An axis over one factor, from the list or the range of its choices."""
    known = factors()
    if name not in known:
        problem = f"unknown axis `{shortened(name)}`"
        faults.append(KdxError(problem, place=key, allowed=known, hint=did_you_mean(name, known)))
        return None
    numbers = Range.model_validate(choices.plain()).numbers if is_range(choices.plain()) else []
    values = [Node(choices.place, number) for number in numbers] or choices.value
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
    return Dimension(name, tuple(bundles))


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


def _ablation(node: Node, task: Node | None, faults: list[KdxError]) -> Dimension:
    """The baseline, and each single change of it: a mapping of names to settings, or a list of settings."""
    bundles = [Bundle(BASELINE, Node(node.place, {}))]
    if isinstance(node.value, dict):
        for name, change in node.value.items():
            if "axes" in change.value:
                problem, place = f"axes in the change `{shortened(name)}`", change.key(("axes",))
                faults.append(KdxError(problem, place=place, hint="write a change for each of their values"))
        bundles += _bundles(node, "change", task, faults)
    for item in node.value if isinstance(node.value, list) else ():
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


def _overrides(
    node: Node, dimensions: Sequence[Dimension], reader: ConditionReader, faults: list[KdxError]
) -> Iterator[Override]:
    axes = {name for dimension in dimensions for name in dimension.names}
    for item in _items(node.value.get("overrides")):
        condition, given = reader.read(item.value["when"]), item.value["set"]
        over = _by_factor(given, faults)
        for name in sorted(axes & paths(over.plain())) if over is not None else ():
            problem, hint = f"an override of `{name}`, which varies on an axis", "exclude and include combinations"
            faults.append(KdxError(problem, place=given.place, hint=hint))
        if condition is not None and over is not None:
            yield Override(condition, over)


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


def _included(part: _Part, parts: Sequence[_Part], faults: list[KdxError]) -> Iterator[dict[str, Bundle]]:
    """Combinations beside the product: the choice on each named axis, and whatever else is set, by factor.

    One that names its task or its grid is for that sub-grid alone.
    """
    own = part.own
    known = {other.own.bundles[0].label: other for other in parts if other.own is not None}
    named = {one.name: one for one in part.dimensions if one.name not in factors() and one is not own}
    for item in _items(part.node.value.get("include")):
        before = len(faults)
        bundles = {own.name: own.bundles[0]} if own is not None and own.name not in factors() else {}
        if own is not None and own.name in item.value:
            name = str(item.value[own.name].plain())
            if name not in known:
                problem, place = f"unknown {own.name} `{shortened(name)}`", item.value[own.name].place
                faults.append(KdxError(problem, place=place, allowed=known, hint=did_you_mean(name, known)))
            if name != own.bundles[0].label:
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
                bundles[name] = choices[label]
        if len(faults) == before and rest is not None:
            yield bundles | {"": Bundle("", rest)}


def _label(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(_label(inner) for inner in value) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

"""What varies in a grid: its axes, approaches, zipped factors and sub-grids, as dimensions of a product.

An axis is a factor with a list or a range of values, or a name of its own with a mapping of named choices, each of
which sets several factors, as an approach does. A preset lies under all that the grid sets; that of a task, an approach
or a named choice takes the place of the grid's. A zip is an axis whose choices set several factors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from kdx.errors import KdxError, Place, shortened
from kdx.grid.cell_selector import factors, plain_number
from kdx.grid.conditions import ConditionReader
from kdx.grid.expand import Bundle, Dimension, Override, SubGrid, paths
from kdx.grid.extends import preset_of
from kdx.grid.messages import checked
from kdx.grid.model import SUB_GRID, Range, is_range
from kdx.grid.model import SubGrid as SubGridModel
from kdx.grid.settings import at_path, settings, settings_by_factor, settings_of, without_removed
from kdx.grid.source import LONGEST_KEY, Node, no_value
from kdx.grid.synonyms import did_you_mean

_SETTINGS = "a mapping of settings"


def sub_grids(root: Node, faults: list[KdxError]) -> list[SubGrid]:
    """Return one for each of `tasks:` or of `grids:`, or the grid itself."""
    own_faults: list[KdxError] = []
    parts = [(node, _sub_grid(node, own, own_faults)) for node, own in _nodes(root, own_faults)]
    axes = dict.fromkeys(name for _, sub_grid in parts for name in sub_grid.axes)
    # A name that a faulty axis would have is not known, so conditions are judged only in a grid without such faults.
    reader = ConditionReader([name for name in axes if name not in factors()], [] if own_faults else own_faults)
    whole = [_with_conditions(sub_grid, node, reader, own_faults) for node, sub_grid in parts]
    # What sub-grids share is looked at in each of them.
    faults.extend({str(fault): fault for fault in own_faults}.values())
    return whole


def _nodes(root: Node, faults: list[KdxError]) -> Iterator[tuple[Node, Dimension | None]]:
    """Each sub-grid over what all of them share, with the dimension that names it; the grid itself has none."""
    key = next((key for key in ("tasks", "grids") if key in root.value), None)
    shared = Node(root.place, {k: v for k, v in root.value.items() if k in (*settings(), *SUB_GRID)}, root.keys)
    if key is None:
        yield checked(SubGridModel, shared, faults)[1], None
        return
    axis = key.removesuffix("s")
    for name, part in root.value[key].value.items():
        if not isinstance(part.value, dict):
            problem = KdxError(f"`{part}` as {key}.{shortened(name)}", place=part.place, allowed=_SETTINGS)
            place = root.value[key].key((name,))
            faults.append(problem if part.value is not None else no_value(f"{key}.{shortened(name)}", place, _SETTINGS))
            continue
        whole = without_removed(shared.overlaid(part))
        if key == "tasks":
            whole = Node(whole.place, {**whole.value, "task": Node(root.value[key].key((name,)), name)}, whole.keys)
        _, whole = checked(SubGridModel, whole, faults)
        yield whole, Dimension(axis, (Bundle({axis: name}, Node(part.place, {})),))


def _sub_grid(node: Node, own: Dimension | None, faults: list[KdxError]) -> SubGrid:
    """The sub-grid without its conditions, which may name the axes of all sub-grids."""
    try:
        preset = preset_of(node, node.value.get("task"))
    except KdxError as error:
        faults.append(error)
        return SubGrid(node, (Dimension("preset", ()),))
    task = node.value.get("task") or (preset and preset.value.get("task"))
    dimensions = (*([own] if own else ()), *_dimensions(node, task, faults))
    _refuse_twice(dimensions, node, faults)
    return SubGrid(settings_of(node), dimensions, preset)


def _with_conditions(sub_grid: SubGrid, node: Node, reader: ConditionReader, faults: list[KdxError]) -> SubGrid:
    excluded = [reader.read(item) for item in _items(node.value.get("exclude"))]
    overrides = [_override(item, sub_grid, reader, faults) for item in _items(node.value.get("overrides"))]
    return replace(
        sub_grid,
        exclude=tuple(condition for condition in excluded if condition is not None),
        overrides=tuple(override for override in overrides if override is not None),
    )


def _dimensions(node: Node, task: Node | None, faults: list[KdxError]) -> Iterator[Dimension]:
    if "approaches" in node.value:
        yield _named("approach", node.value["approaches"], task, faults)
    for name, choices in _entries(node.value.get("axes")):
        if name in factors() or not isinstance(choices.value, dict) or is_range(choices.plain()):
            yield from _factor(name, choices, node.value["axes"].key((name,)), faults)
        else:
            yield _named(name, choices, task, faults)
    for item in _items(node.value.get("zip")):
        yield from _zipped(item, faults)


def _entries(node: Node | None) -> list[tuple[str, Node]]:
    return list(node.value.items()) if node is not None else []


def _items(node: Node | None) -> list[Node]:
    """The items of a list; a mapping that stands alone is a list of one."""
    return [] if node is None else node.value if isinstance(node.value, list) else [node]


def _named(axis: str, choices: Node, task: Node | None, faults: list[KdxError]) -> Dimension:
    """An axis of named choices, each a mapping of settings and, where it names one, the preset under them."""
    bundles: list[Bundle] = []
    for name, choice in choices.value.items():
        try:
            bundles.append(Bundle({axis: name}, settings_of(choice), preset_of(choice, task)))
        except KdxError as error:
            faults.append(error)
    return Dimension(axis, tuple(bundles))


def _factor(name: str, choices: Node, key: Place, faults: list[KdxError]) -> Iterator[Dimension]:
    """An axis over one factor, from the list or the range of its choices; none where there is no such factor."""
    if name not in factors():
        problem, hint = f"unknown axis `{shortened(name)}`", did_you_mean(name, factors())
        faults.append(KdxError(problem, place=key, allowed=factors(), hint=hint))
        return
    if isinstance(choices.value, dict) and not is_range(choices.plain()):
        allowed = "a list of its values, or a range such as {from: 100, to: 500, step: 100}"
        hint = f"named choices need another name than `{name}`, such as axes: {{settings: …}}"
        faults.append(KdxError(f"a mapping as axes.{name}", place=choices.place, allowed=allowed, hint=hint))
        return
    numbers = Range.model_validate(choices.plain()).numbers if is_range(choices.plain()) else []
    bundles: list[Bundle] = []
    seen: set[str] = set()
    for choice in [Node(choices.place, number) for number in numbers] or choices.value:
        label = _label(choice.plain())
        if len(label) > LONGEST_KEY:
            problem, allowed = f"`{shortened(label)}` has {len(label):,} characters", f"at most {LONGEST_KEY}"
            hint = "give it a name: an axis may be a mapping of named choices"
            faults.append(KdxError(problem, place=choice.place, allowed=allowed, hint=hint))
        if plain_number(label) in seen:
            problem = f"`{shortened(label)}` stands twice on axis `{name}`"
            faults.append(KdxError(problem, place=choice.place, hint="keep one of them"))
        seen.add(plain_number(label))
        bundles.append(Bundle({name: label}, at_path(name.split("."), choice)))
    yield Dimension(name, tuple(bundles))


def _zipped(item: Node, faults: list[KdxError]) -> Iterator[Dimension]:
    """Factors that vary together: the first choice of each, then the second, and so on."""
    columns = [
        column for name, choices in item.value.items() for column in _factor(name, choices, item.key((name,)), faults)
    ]
    lengths = {column.name: len(column.bundles) for column in columns}
    if len(set(lengths.values())) > 1:
        problem = f"a zip of unequal lengths: {', '.join(f'{name} has {count}' for name, count in lengths.items())}"
        faults.append(KdxError(problem, place=item.place, allowed="the same number of each"))
        return
    yield Dimension(
        columns[0].name,
        tuple(
            Bundle(
                {name: label for bundle in together for name, label in bundle.labels.items()},
                reduce(Node.overlaid, (bundle.settings for bundle in together)),
            )
            for together in zip(*(column.bundles for column in columns), strict=True)
        ),
    )


def _refuse_twice(dimensions: Sequence[Dimension], node: Node, faults: list[KdxError]) -> None:
    """Two axes that set the same factor: one would be without effect."""
    owners: dict[str, Dimension] = {}
    for dimension in dimensions:
        for name in dimension.names:
            if name in owners:
                others = sorted({owners[name].name, dimension.name} - {name})
                problem = f"`{name}` varies twice" + (f", in {' and in '.join(others)}" if others else "")
                faults.append(KdxError(problem, place=_place_of(dimension, node), hint="keep one of them"))
            owners[name] = dimension
    for name in factors():
        for dimension in dimensions if name in owners else ():
            if name in dimension.names:
                continue
            for bundle in dimension.bundles:
                if bundle.settings.inner(name.split(".")) is not None:
                    problem = f"axis `{name}` and {dimension.name} `{bundle.labels[dimension.name]}` both set `{name}`"
                    place = bundle.settings.key((name.partition(".")[0],))
                    hint = f"take `{name}` out of the axes or out of the {dimension.name}"
                    faults.append(KdxError(problem, place=place, hint=hint))


def _place_of(dimension: Dimension, node: Node) -> Place:
    """Where an axis is written, or the grid that it is in."""
    if node.inner(("axes", dimension.name)) is not None:
        return node.key(("axes", dimension.name))
    return node.key(("zip",) if "zip" in node.value else ("approaches",))


def _override(item: Node, sub_grid: SubGrid, reader: ConditionReader, faults: list[KdxError]) -> Override | None:
    condition, written = reader.read(item.value["when"]), item.value["set"]
    settings = _by_factor(written, faults)
    for name in sorted({*sub_grid.axes} & paths(settings.plain())) if settings is not None else ():
        problem, hint = f"an override of `{name}`, which varies on an axis", "exclude combinations"
        faults.append(KdxError(problem, place=written.place, hint=hint))
    return Override(condition, settings) if condition is not None and settings is not None else None


def _by_factor(node: Node, faults: list[KdxError]) -> Node | None:
    """Settings as a grid nests them, or by factor."""
    before = len(faults)
    for key in node.value:
        section, _, name = key.rpartition(".")
        if section and node.inner((section, name)) is not None:
            problem = f"`{key}` is set twice, also under `{section}`"
            faults.append(KdxError(problem, place=node.key((key,)), hint="keep one of them"))
    return settings_by_factor(node) if len(faults) == before else None


def _label(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(_label(inner) for inner in value) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

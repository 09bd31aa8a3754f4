"""What varies in a grid: its axes, approaches, zipped factors and sub-grids, as dimensions of a product.

An axis is a factor with a list or a range of values, or a name of its own with a mapping of named choices, each of
which sets several factors, as an approach does. A preset lies under all that the grid sets; that of a task, an approach
or a named choice takes the place of the grid's. A zip is an axis whose choices set several factors.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import combinations
from typing import Any

from kdx.errors import KdxError, Place, shortened
from kdx.grid.cell_selector import factors, plain_number, settings, word
from kdx.grid.expand import Bundle, Condition, Dimension, SubGrid, paths
from kdx.grid.extends import preset_of, without_removed
from kdx.grid.messages import checked
from kdx.grid.model import SUB_GRID, Range, is_range
from kdx.grid.model import SubGrid as SubGridModel
from kdx.grid.source import LONGEST_KEY, Node, at_path
from kdx.grid.synonyms import did_you_mean


def named_axes(root: Node) -> tuple[str, ...]:
    """Return the axes of a whole grid that are no factors, before anything in it is checked."""
    names: dict[str, None] = {}
    for key in ("tasks", "grids"):
        if key in root.value:
            names[key.removesuffix("s")] = None
    parts = [root, *(part for key in ("tasks", "grids") for _, part in _entries(root.inner((key,))))]
    for part in parts:
        if part.inner(("approaches",)) is not None:
            names["approach"] = None
        names |= dict.fromkeys(name for name, _ in _entries(part.inner(("axes",))))
    return tuple(name for name in names if name not in factors())


def sub_grids(root: Node, faults: list[KdxError]) -> list[SubGrid]:
    """Return one for each of `tasks:` or of `grids:`, or the grid itself."""
    own_faults: list[KdxError] = []
    # A condition that several sub-grids share knows the words of all their combinations.
    conditions: dict[tuple[Place, str], Condition] = {}

    def condition(node: Node) -> Condition:
        return conditions.setdefault((node.place, str(node.plain())), Condition.of(node))

    parts = [_sub_grid(node, own, condition, own_faults) for node, own in _nodes(root, own_faults)]
    # What sub-grids share is looked at in each of them.
    faults.extend({str(fault): fault for fault in own_faults}.values())
    return parts


def _nodes(root: Node, faults: list[KdxError]) -> Iterator[tuple[Node, list[Dimension]]]:
    """Yield each sub-grid over what all of them share, checked, with the dimension that names it, if there is one."""
    axes = named_axes(root)
    shared = root.only((*settings(), *SUB_GRID))
    key = next((key for key in ("tasks", "grids") if key in root.value), None)
    if key is None:
        yield checked(SubGridModel, shared, faults, axes)[1], []
        return
    axis = key.removesuffix("s")
    for name, part in root.value[key].value.items():
        whole = without_removed(shared.overlaid(part))
        if key == "tasks":
            whole = Node(whole.place, {**whole.value, "task": Node(root.value[key].key((name,)), name)}, whole.keys)
        own = Dimension(axis, (Bundle({axis: name}, Node(part.place, {})),))
        yield checked(SubGridModel, whole, faults, axes)[1], [own]


def _sub_grid(
    node: Node, own: list[Dimension], condition: Callable[[Node], Condition], faults: list[KdxError]
) -> SubGrid:
    try:
        preset = preset_of(node, node.value.get("task"))
    except KdxError as error:
        faults.append(error)
        return SubGrid(node, (Dimension("preset", ()),))
    task = node.value.get("task") or (preset and preset.value.get("task"))
    dimensions = (*own, *_dimensions(node, task, faults))
    _refuse_twice(dimensions, node, faults)
    exclude = tuple(map(condition, _items(node.value.get("exclude"))))
    axes = {name for dimension in dimensions for name in dimension.names}
    overrides = []
    for item in _items(node.value.get("overrides")):
        over = _by_factor(item.value["set"], faults)
        for name in sorted(axes & paths(over)):
            problem, hint = f"an override of `{name}`, which varies on an axis", "exclude combinations"
            faults.append(KdxError(problem, place=item.value["set"].place, hint=hint))
        overrides.append((condition(item.value["when"]), over))
    return SubGrid(node.only(settings()), dimensions, preset, exclude, tuple(overrides))


def _dimensions(node: Node, task: Node | None, faults: list[KdxError]) -> Iterator[Dimension]:
    if _entries(node.value.get("approaches")):
        yield _named("approach", node.value["approaches"], task, faults)
    for name, choices in _entries(node.value.get("axes")):
        if name in factors() or not isinstance(choices.value, dict) or is_range(choices.plain()):
            yield from _factor(name, node.value["axes"], faults)
        else:
            yield _named(name, choices, task, faults)
    for item in _items(node.value.get("zip")):
        yield from _zipped(item, faults)


def _entries(node: Node | None) -> list[tuple[str, Node]]:
    return list(node.value.items()) if node is not None and isinstance(node.value, dict) else []


def _items(node: Node | None) -> list[Node]:
    """Return the items of a list; a mapping that stands alone is a list of one."""
    return [] if node is None else node.value if isinstance(node.value, list) else [node]


def _named(axis: str, choices: Node, task: Node | None, faults: list[KdxError]) -> Dimension:
    """Return an axis of named choices, each a mapping of settings and, where it names one, the preset under them."""
    bundles: list[Bundle] = []
    for name, choice in choices.value.items():
        try:
            bundles.append(Bundle({axis: name}, choice.only(settings()), preset_of(choice, task)))
        except KdxError as error:
            faults.append(error)
    return Dimension(axis, tuple(bundles))


def _factor(name: str, axes: Node, faults: list[KdxError], repeats: bool = False) -> Iterator[Dimension]:
    """Yield the axis over one factor, from the list or the range of its choices; none if there is no such factor.

    Args:
        axes: the mapping that has it.
        repeats: whether a choice may stand twice.
    """
    choices = axes.value[name]
    if name not in factors():
        problem, hint = f"unknown axis `{shortened(name)}`", did_you_mean(name, factors())
        faults.append(KdxError(problem, place=axes.key((name,)), allowed=factors(), hint=hint))
        return
    if is_range(choices.plain()):
        items = [Node(choices.place, number) for number in Range.model_validate(choices.plain()).numbers]
    elif isinstance(choices.value, list):
        items = choices.value
    else:
        allowed = "a list of its values, or a range such as {from: 100, to: 500, step: 100}"
        hint = f"named choices need another name than `{name}`, such as axes: {{settings: …}}"
        faults.append(KdxError(f"a mapping as axes.{name}", place=choices.place, allowed=allowed, hint=hint))
        return
    bundles: list[Bundle] = []
    seen: set[str] = set()
    for choice in items:
        label = _label(choice.plain())
        if len(label) > LONGEST_KEY:
            problem, allowed = f"`{shortened(label)}` has {len(label):,} characters", f"at most {LONGEST_KEY}"
            hint = "give it a name: an axis may be a mapping of named choices"
            faults.append(KdxError(problem, place=choice.place, allowed=allowed, hint=hint))
        if plain_number(label) in seen and not repeats:
            problem = f"`{shortened(label)}` stands twice on axis `{name}`"
            faults.append(KdxError(problem, place=choice.place, hint="keep one of them"))
        seen.add(plain_number(label))
        bundles.append(Bundle({name: label}, at_path(name.split("."), choice)))
    yield Dimension(name, tuple(bundles))


def _zipped(node: Node, faults: list[KdxError]) -> Iterator[Dimension]:
    """Yield the axis of factors that vary together: the first choice of each, then the second, and so on."""
    columns = [column for name in node.value for column in _factor(name, node, faults, repeats=True)]
    lengths = {column.name: len(column.bundles) for column in columns}
    if len(set(lengths.values())) > 1:
        problem = f"a zip of unequal lengths: {', '.join(f'{name} has {count}' for name, count in lengths.items())}"
        faults.append(KdxError(problem, place=node.place, allowed="the same number of each"))
        return
    bundles: list[Bundle] = []
    for together in zip(*(column.bundles for column in columns), strict=True):
        labels = {name: label for bundle in together for name, label in bundle.labels.items()}
        if any(bundle.labels == labels for bundle in bundles):
            problem = f"{', '.join(f'{name} {label}' for name, label in labels.items())} stand together twice in a zip"
            place = together[0].settings.at(tuple(columns[0].name.split(".")))
            faults.append(KdxError(problem, place=place, hint="keep one of them"))
        bundles.append(Bundle(labels, reduce(Node.overlaid, (bundle.settings for bundle in together))))
    yield Dimension(columns[0].name, tuple(bundles))


def _refuse_twice(dimensions: Sequence[Dimension], node: Node, faults: list[KdxError]) -> None:
    """Refuse two axes that set the same factor: one would be without effect."""
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
    # What is wrong in every choice leaves none.
    for earlier, later in combinations([each for each in dimensions if each.bundles], 2):
        always = frozenset.intersection(*(paths(bundle.settings) for bundle in later.bundles))
        for bundle in earlier.bundles:
            for name in sorted((paths(bundle.settings) & always).difference(earlier.names, later.names)):
                choice = f"{earlier.name} `{bundle.labels[earlier.name]}`"
                problem = f"{choice} sets `{name}`, as does every choice of {later.name}"
                place = bundle.settings.at(tuple(name.split(".")))
                faults.append(KdxError(problem, place=place, hint="keep one of them: the later one counts"))


def _place_of(dimension: Dimension, node: Node) -> Place:
    """Return the place of an axis in the file, or that of its grid."""
    if node.inner(("axes", dimension.name)) is not None:
        return node.key(("axes", dimension.name))
    return node.key(("zip",) if "zip" in node.value else ("approaches",))


def _by_factor(node: Node, faults: list[KdxError]) -> Node:
    """Return settings as a grid nests them, of which some are written by factor: `training.steps: 100`."""
    whole = Node(node.place, {})
    for key, value in node.value.items():
        section, _, name = key.rpartition(".")
        if section and node.inner((section, name)) is not None:
            problem = f"`{key}` is set twice, also under `{section}`"
            faults.append(KdxError(problem, place=node.key((key,)), hint="keep one of them"))
        else:
            whole = whole.overlaid(at_path(key.split("."), value))
    return whole


def _label(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(_label(inner) for inner in value) or "none"
    return word("", value)

"""What varies in a grid: its axes, approaches, ablation, zipped factors and sub-grids, as dimensions of a product.

An axis is a factor with a list or a range of values, or a name of its own with a mapping of named choices, each of
which sets several factors, as an approach does. A preset lies under all that the grid sets; that of a task, an approach
or a named choice takes the place of the grid's.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from kdx.errors import KdxError, Place, did_you_mean
from kdx.grid.cell_selector import factors
from kdx.grid.conditions import MOST_CONDITIONS, Condition, read_condition
from kdx.grid.expand import Bundle, Dimension, Override, SubGrid
from kdx.grid.extends import preset_of
from kdx.grid.ranges import is_range, numbers_of
from kdx.grid.settings import at_path, check_keys, list_of, mapping_of, settings, settings_by_factor, settings_of
from kdx.grid.source import LONGEST_KEY, Node, shortened
from kdx.tasks import TASKS

MOST_AXES = 100
LARGEST_CHOICE = 10_000
"""Combinations of the axes that a choice has of its own."""
SUB_GRID = {
    "axes": "What varies, and multiplies: a factor with a list or a range of its values, or a name of its own with a "
    "mapping of named choices, each of which sets several keys.",
    "zip": "Factors that vary together: the first value of each, then the second, and so on.",
    "approaches": "Named bundles of settings, which make one axis; a bundle may have axes of its own.",
    "ablate": "Single changes of what the grid sets: each makes a cell beside the unchanged baseline.",
    "exclude": "Combinations to leave out, each by a condition: factors with words, all of which must agree; a list is "
    "any of its words, and what stands under `not` must not hold.",
    "include": "Combinations beside the product: the choice on each named axis, and whatever else they set.",
    "overrides": "What is set in every combination that fulfils a condition.",
    "preset": "A shipped set of settings that lies under all that the grid sets.",
}
"""The keys that a sub-grid may have beside its settings, with what each is."""
GRID = {
    "name": "What the sweep is called; the file's name unless said otherwise.",
    "description": "What the grid is for.",
    "extends": "A grid that lies under this one, by its path or as a shipped one: mappings merge key by key, anything "
    "else replaces, and null takes an entry out.",
    "seeds": "How many seeds each cell has, or which; seed 0 alone unless said otherwise.",
    "tables": "The tables of the report; one over all axes unless said otherwise.",
    "evaluations": "Further readings of each run that completes, by name; a list of values makes one for each.",
    "tasks": "A sub-grid for each of several tasks, laid over what all of them share.",
    "grids": "Several sub-grids by names of their own, laid over what all of them share.",
    **SUB_GRID,
}
"""Those of a whole grid."""
ABLATION, BASELINE = "ablation", "baseline"
"""The axis that `ablate` makes, and the choice on it that changes nothing."""


def sub_grids(root: Node, faults: list[KdxError]) -> list[SubGrid]:
    """One for each of `tasks:` or of `grids:`, or the grid itself."""
    varied = [key for key in ("tasks", "grids") if key in root.value]
    if len(varied) == 2:
        problem, place = "`tasks` and `grids` exclude each other", root.key(("grids",))
        faults.append(KdxError(problem, place=place, hint="write `task:` into each of the grids"))
        return []
    if not varied:
        return [_sub_grid(root, (), faults)]
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
        found.append(_sub_grid(whole, (first,), faults))
    return found


def _sub_grid(node: Node, first: tuple[Dimension, ...], faults: list[KdxError]) -> SubGrid:
    base = settings_of(node)
    task = base.value.get("task")
    try:
        preset = preset_of(node, task)
    except KdxError as error:
        faults.append(error)
        return SubGrid(base, (Dimension("preset", ()),))
    task = task or (preset and preset.value.get("task"))
    dimensions = []
    if approaches := mapping_of(node.value.get("approaches"), faults, "approaches"):
        dimensions.append(Dimension("approach", _bundles(approaches, "approach", task, faults)))
    if "ablate" in node.value and (dimension := _ablation(node.value["ablate"], task, faults)):
        dimensions.append(dimension)
    axes = node.value.get("axes")
    conditions = []
    for name, choices in mapping_of(axes, faults, "axes").items():
        assert axes is not None
        if (found := _axis(name, choices, axes.key((name,)), task, faults)) is not None:
            dimensions.append(found)
            if name in factors() and isinstance(choices.value, dict) and "when" in choices.value:
                conditions.append((len(dimensions) - 1, choices.value["when"]))
    for item in list_of(node.value.get("zip"), faults, "zip", most=MOST_AXES):
        if (found := _zipped(item, faults)) is not None:
            dimensions.append(found)
    if len(dimensions) > MOST_AXES:
        place = (axes or node).place
        faults.append(KdxError(f"{len(dimensions):,} axes", place=place, allowed=f"at most {MOST_AXES}"))
        return SubGrid(base, (Dimension("axes", ()),))
    _refuse_twice(dimensions, node, faults)
    named = [one for dimension in (*first, *dimensions) for one in dimension.names if one not in factors()]
    for index, condition in conditions:
        dimensions[index] = _conditional(dimensions[index], condition, named, faults)
    return SubGrid(
        base,
        (*first, *dimensions),
        preset,
        exclude=_conditions(node.value.get("exclude"), "exclude", named, faults),
        overrides=_overrides(node.value.get("overrides"), named, faults),
        include=_included(node.value.get("include"), [*first, *dimensions], task, faults),
    )


def _axis(name: str, choices: Node, key: Place, task: Node | None, faults: list[KdxError]) -> Dimension | None:
    if isinstance(choices.value, dict) and name not in factors():
        return _named(name, choices, key, task, faults)
    if isinstance(choices.value, dict) and "when" in choices.value:
        for other in choices.value:
            if other not in ("values", "when"):
                problem, place = f"unknown key `{shortened(other)}` on axis `{name}`", choices.key((other,))
                faults.append(KdxError(problem, place=place, allowed=("values", "when")))
        if "values" not in choices.value:
            faults.append(KdxError(f"axis `{name}` has no `values`", place=choices.place, allowed="a list, or a range"))
            return None
        choices = choices.value["values"]
    return _factor(name, choices, key, faults)


def _named(name: str, choices: Node, key: Place, task: Node | None, faults: list[KdxError]) -> Dimension | None:
    """An axis by names, from the mapping of its choices."""
    if name in (*GRID, *settings(), "approach", "grid", ABLATION):
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
    return [
        Bundle(
            whole.label,
            _overlaid([whole.settings, *(one.settings for one in chosen)]),
            whole.preset,
            {dimension.name: one.label for dimension, one in zip(inner, chosen, strict=True)},
        )
        for chosen in product(*(dimension.bundles for dimension in inner))
    ]


def _overlaid(nodes: Iterable[Node]) -> Node:
    whole, *others = nodes
    for node in others:
        whole = whole.overlaid(node)
    return whole


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
        if bundle.label in seen:
            faults.append(KdxError(f"`{shortened(bundle.label)}` stands twice on axis `{name}`", place=choice.place))
        seen.add(bundle.label)
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
        labels = {column.name: bundle.label for column, bundle in zip(others, beside, strict=True)}
        bundles.append(Bundle(one.label, _overlaid([one.settings, *(b.settings for b in beside)]), inner=labels))
    return Dimension(first.name, tuple(bundles))


def _ablation(node: Node, task: Node | None, faults: list[KdxError]) -> Dimension | None:
    """The baseline, and each single change of it: a mapping of names to settings, or a list of factors with a word."""
    baseline = Bundle(BASELINE, Node(node.place, {}))
    if isinstance(node.value, dict):
        changes = mapping_of(node, faults, "ablate")
        if BASELINE in changes:
            problem, place = f"`{BASELINE}` as a change", node.key((BASELINE,))
            faults.append(KdxError(problem, place=place, hint="it is what the grid sets anyway; remove it"))
        return Dimension(ABLATION, (baseline, *_bundles(changes, "change", task, faults)), baseline=BASELINE)
    bundles = [baseline]
    for item in list_of(node, faults, "ablate", most=MOST_AXES):
        known = factors()
        unknown = [name for name in item.value if name not in known]
        for name in unknown:
            problem, hint = f"unknown factor `{shortened(name)}`", did_you_mean(name, known)
            faults.append(KdxError(problem, place=item.key((name,)), allowed=known, hint=hint))
        if unknown:
            continue
        label = ", ".join(f"{name} = {_label(value.plain())}" for name, value in item.value.items())
        if any(label == bundle.label for bundle in bundles):
            faults.append(KdxError(f"`{shortened(label)}` stands twice under `ablate`", place=item.place))
        bundles.append(Bundle(label, settings_by_factor(item)))
    return Dimension(ABLATION, tuple(bundles), baseline=BASELINE)


def _refuse_twice(dimensions: Sequence[Dimension], node: Node, faults: list[KdxError]) -> None:
    """Two axes that set the same factor: one would be without effect."""
    owners: dict[str, Dimension] = {}
    for dimension in dimensions:
        for name in dimension.names:
            if name in owners and owners[name] is not dimension:
                problem = f"`{name}` varies twice, in {owners[name].name} and in {dimension.name}"
                faults.append(KdxError(problem, place=node.place, hint="keep one of them"))
            owners[name] = dimension
    for name, owner in owners.items():
        if name not in factors():
            continue
        path = tuple(name.split("."))
        for dimension in dimensions:
            for bundle in dimension.bundles if dimension is not owner else ():
                if name not in dimension.names and _holds(bundle.settings, path):
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


def _conditional(dimension: Dimension, node: Node, named: Sequence[str], faults: list[KdxError]) -> Dimension:
    condition = read_condition(node, named, faults)
    if condition is not None and dimension.name in condition.terms:
        problem, place = f"axis `{dimension.name}` depends on itself", node.key((dimension.name,))
        faults.append(KdxError(problem, place=place, hint="name other factors"))
    return Dimension(dimension.name, dimension.bundles, when=condition)


def _conditions(node: Node | None, what: str, named: Sequence[str], faults: list[KdxError]) -> tuple[Condition, ...]:
    found = (read_condition(item, named, faults) for item in list_of(node, faults, what, most=MOST_CONDITIONS))
    return tuple(condition for condition in found if condition is not None)


def _overrides(node: Node | None, named: Sequence[str], faults: list[KdxError]) -> tuple[Override, ...]:
    """`- {when: condition, set: settings}`"""
    found = []
    for item in list_of(node, faults, "overrides", most=MOST_CONDITIONS):
        check_keys(item, ("when", "set"), faults)
        missing = [key for key in ("when", "set") if key not in item.value]
        if missing:
            problem = f"an override without `{missing[0]}`"
            faults.append(KdxError(problem, place=item.place, allowed="{when: {kernel: rbf}, set: {warmup: 400}}"))
            continue
        condition, given = read_condition(item.value["when"], named, faults), item.value["set"]
        if not isinstance(given.value, dict) or not given.value:
            faults.append(KdxError(f"`{given}` under `set`", place=given.place, allowed="a mapping of settings"))
            continue
        if condition is not None and (found_settings := _by_factor(given, faults)) is not None:
            found.append(Override(condition, found_settings))
    return tuple(found)


def _by_factor(node: Node, faults: list[KdxError]) -> Node | None:
    """Settings as a grid nests them, or by factor."""
    before = len(faults)
    known = (*settings(), *factors())
    check_keys(node, known, faults)
    return settings_by_factor(node) if len(faults) == before else None


def _included(
    node: Node | None, dimensions: Sequence[Dimension], task: Node | None, faults: list[KdxError]
) -> tuple[tuple[Bundle, ...], ...]:
    """Combinations beside the product: the choice on each named axis, and whatever else is set, by factor."""
    found = []
    named = {one.name: one for one in dimensions if one.name not in (*factors(), "task", "grid")}
    for item in list_of(node, faults, "include", most=MOST_CONDITIONS):
        before = len(faults)
        check_keys(item, (*named, *settings(), *factors()), faults)
        chosen, rest = [], {key: value for key, value in item.value.items() if key not in named}
        for name, dimension in named.items():
            choices = {bundle.label: bundle for bundle in dimension.bundles}
            if name not in item.value:
                problem = f"an included combination without a choice of `{name}`"
                faults.append(KdxError(problem, place=item.place, allowed=tuple(choices)))
            elif (label := str(item.value[name].plain())) not in choices:
                problem, place = f"unknown {name} `{shortened(label)}`", item.value[name].place
                faults.append(KdxError(problem, place=place, allowed=choices, hint=did_you_mean(label, choices)))
            else:
                chosen.append(choices[label])
        if len(faults) == before:
            found.append((*chosen, Bundle("", settings_by_factor(Node(item.place, rest, item.keys)))))
    return tuple(found)


def _label(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(_label(inner) for inner in value) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

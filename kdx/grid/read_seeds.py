"""The seeds that a grid asks for: a number, a list, or a rule."""

from pydantic import ValidationError

from kdx.errors import KdxError, did_you_mean
from kdx.grid.faults import located
from kdx.grid.plan import Plan
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.seed_rule import DECIDED, SeedRule
from kdx.grid.source import Node, shortened
from kdx.grid.table_layout import reads_evaluations


def read_seeds(node: Node | None, faults: list[KdxError]) -> tuple[tuple[int, ...], SeedRule | None]:
    """The seeds that a cell may have, and the rule by which it needs them, if there is one."""
    if node is None:
        return (0,), None
    value = node.plain()
    if isinstance(value, dict):
        try:
            rule = SeedRule.model_validate(value)
        except ValidationError as error:
            faults.extend(located(error, node, SeedRule))
            return (0,), None
        return rule.seeds, rule
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000:
        return tuple(range(value)), None
    right = isinstance(value, list) and value and all(type(seed) is int and 0 <= seed < 2**32 for seed in value)
    if right and len(set(value)) == len(value):
        return tuple(value), None
    allowed = "a number of seeds, a list of different whole numbers from 0, or {min: 3, max: 12, until: decided}"
    faults.append(KdxError(f"`{node}` are no seeds", place=node.place, allowed=allowed))
    return (0,), None


def check_seed_rule(plan: Plan, root: Node, faults: list[KdxError]) -> None:
    """A rule needs a baseline that a table declares, or metrics that cells have."""
    rule = plan.seed_rule
    if rule is None:
        return
    node = root.value["seeds"]
    if rule.until == DECIDED:
        if not any(table.baseline and not (plan.evaluations and reads_evaluations(table)) for table in plan.tables):
            faults.append(
                KdxError(
                    f"until: {DECIDED} needs a baseline to compare with, and no table of test scores declares one",
                    place=node.at(("until",)),
                    hint="write `baseline:` into a table, or `ablate:`; or a half-width, such as until: {bleu: 0.3}",
                )
            )
        return
    specs = {(cell.spec.task, cell.spec.data.corpus): ResolvedSpec.of(cell.spec) for cell in plan.cells}.values()
    known = list(dict.fromkeys(name for spec in specs for name in spec.test_metrics))
    for metric in rule.widths:
        if metric not in known:
            whole = [name for name in known if "=" not in name]
            faults.append(
                KdxError(
                    f"until: unknown metric `{shortened(metric)}`",
                    place=node.key(("until", metric)),
                    allowed=whole,
                    hint=did_you_mean(metric, known),
                )
            )

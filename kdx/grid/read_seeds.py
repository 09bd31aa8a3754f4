"""The seeds that a grid asks for: a number, a list, a rule, or some for each source of randomness."""

from itertools import product
from math import prod

from pydantic import ValidationError

from kdx.errors import KdxError, did_you_mean, shortened
from kdx.grid.faults import located
from kdx.grid.plan import Plan
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.seed_rule import DECIDED, SeedRule
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.table_layout import reads_evaluations
from kdx.seed_sources import MOST_APART, Source, SourceSeeds, by_source, seed_of
from kdx.tasks import TASKS

MOST_SEEDS = 1_000_000
LARGEST_SEED = 2**32 - 1


def read_seeds(node: Node | None, faults: list[KdxError]) -> tuple[tuple[int, ...], SeedRule | None]:
    """The seeds that a cell may have, and the rule by which it needs them, if there is one."""
    if node is None:
        return (0,), None
    value = node.plain()
    if isinstance(value, dict):
        if any(source in value for source in Source):
            return _of_sources(node, faults), None
        try:
            rule = SeedRule.model_validate(value)
        except ValidationError as error:
            faults.extend(located(error, node, SeedRule))
            return (0,), None
        return rule.seeds, rule
    found = _listed(value)
    if found is None:
        allowed = (
            "a number of seeds, a list of different whole numbers from 0, {min: 3, max: 12, until: decided}, or "
            f"{{{', '.join(f'{source}: 3' for source in Source)}}}"
        )
        faults.append(KdxError(f"`{node}` are no seeds", place=node.place, allowed=allowed))
    return found or (0,), None


def _listed(value: object) -> tuple[int, ...] | None:
    """The seeds of a number, or of a list with words such as i0-o1-d2 among them; None: it is neither."""
    if not isinstance(value, list) or not (words := [one for one in value if isinstance(one, str)]):
        return _numbers(value, MOST_SEEDS, LARGEST_SEED)
    numbers = [seed_of(one) if isinstance(one, str) else one for one in value]
    plain = _numbers([one for one in value if one not in words], MOST_SEEDS, LARGEST_SEED)
    if None in numbers or len(set(numbers)) < len(numbers) or (plain is None and len(words) < len(value)):
        return None
    return tuple(one for one in numbers if one is not None)


def _numbers(value: object, most: int, largest: int) -> tuple[int, ...] | None:
    """0, 1, … where a number of seeds is written, or those of a list; None: it is neither."""
    if type(value) is int and 1 <= value <= most:
        return tuple(range(value))
    if isinstance(value, list) and value and all(type(seed) is int and 0 <= seed <= largest for seed in value):
        return tuple(value) if len(set(value)) == len(value) else None
    return None


def _of_sources(node: Node, faults: list[KdxError]) -> tuple[int, ...]:
    """Every combination of the sources' seeds, those that vary least often first; a source that is not said has 0."""
    seeds: dict[str, tuple[int, ...]] = dict.fromkeys(Source, (0,))
    for source, inner in node.value.items():
        if source not in seeds:
            faults.append(
                KdxError(
                    f"`{shortened(source)}` is no source of randomness",
                    place=node.key((source,)),
                    allowed=[*Source],
                    hint=did_you_mean(source, [*Source]),
                )
            )
        elif found := _numbers(inner.plain(), MOST_APART + 1, MOST_APART):
            seeds[source] = found
        else:
            allowed = f"a number of seeds, or a list of different whole numbers from 0 to {MOST_APART}"
            faults.append(KdxError(f"`{inner}` are no seeds of {source}", place=inner.place, allowed=allowed))
    if (count := prod(map(len, seeds.values()))) > MOST_SEEDS:
        problem = f"{count:,} combinations of seeds"
        faults.append(KdxError(problem, place=node.place, allowed=f"at most {MOST_SEEDS:,}"))
        return (0,)
    return tuple(SourceSeeds(*each).number for each in product(*seeds.values()))


def check_sources(plan: Plan, root: Node, faults: list[KdxError]) -> None:
    """Seeds of a source from which some cell draws nothing would only repeat its runs."""
    node = root.value.get("seeds")
    if node is None or not isinstance(node.value, dict) or plan.seed_rule is not None:
        return
    varied = {source for source, its in by_source(plan.seeds).items() if len(set(its)) > 1}
    for source, reason in _WITHOUT.items():
        without = [cell for cell in plan.cells if draws_nothing(cell.spec, source)] if source in varied else []
        if without and source in node.value:
            name = " · ".join(without[0].labels.values()) or without[0].spec.task
            more = f" and {len(without) - 1} more" if len(without) > 1 else ""
            faults.append(
                KdxError(
                    f"seeds of {source} make no difference to {name}{more}: {reason}",
                    place=node.key((source,)),
                    hint=f"leave {source} out, or such cells",
                )
            )


_WITHOUT = {
    Source.ORDER: "streams are read from end to end, in every epoch alike",
    Source.DROPOUT: "no dropout of it is above 0",
}


def draws_nothing(spec: CellSpec, source: Source) -> bool:
    """Whether a run of the cell draws nothing from a source. What parts of one's own draw is not known."""
    if source is Source.ORDER:
        return TASKS.definition(spec.task).data.streams
    if source is Source.DROPOUT:
        model, options = spec.model, [value for name, value in spec.options.items() if name.endswith("dropout")]
        return not spec.parts and not any([model.dropout, model.inner_dropout, model.output_dropout, *options])
    return False


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

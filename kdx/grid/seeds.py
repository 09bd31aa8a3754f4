"""The seeds that a grid asks for: a number, a list, a rule, or some for each source of randomness."""

from itertools import product
from math import prod
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Discriminator, Tag, WithJsonSchema, model_validator

from kdx.errors import KdxError, did_you_mean, shortened
from kdx.grid.plan import Plan
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.sections import Section, distinct_list, not_allowed, refuse
from kdx.grid.seed_rule import DECIDED, SeedRule
from kdx.grid.seed_sources import MOST_APART, WORD, Source, SourceSeeds, by_source, seed_of
from kdx.grid.source import Node
from kdx.grid.spec import CellSpec
from kdx.grid.table_layout import reads_evaluations
from kdx.tasks import TASKS

MOST_SEEDS = 1_000_000
LARGEST_SEED = 2**32 - 1


def _numbers(value: Any, most: int, largest: int) -> tuple[int, ...] | None:
    """0, 1, … where a number of seeds is written, or those of a list; None: it is neither."""
    if type(value) is int and 1 <= value <= most:
        return tuple(range(value))
    if isinstance(value, list) and value and all(type(seed) is int and 0 <= seed <= largest for seed in value):
        return tuple(value) if len(set(value)) == len(value) else None
    return None


def _seeds(value: Any) -> tuple[int, ...]:
    """The seeds of a number, or of a list, which may have words such as i0-o1-d2.

    Raises:
        PydanticCustomError: it is neither.
    """
    words = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    if words:
        value = [seed_of(item) if isinstance(item, str) else item for item in value]
        largest = max((item for item in value if type(item) is int), default=0)
        # The seed of a word is larger than any that a grid writes by itself.
        numbers = _numbers(value, MOST_SEEDS, max(largest, LARGEST_SEED))
    else:
        numbers = _numbers(value, MOST_SEEDS, LARGEST_SEED)
    if numbers is None:
        raise not_allowed(
            "a number of seeds, a list of different whole numbers from 0, {min: 3, max: 12, until: decided}, or "
            f"{{{', '.join(f'{source}: 3' for source in Source)}}}"
        )
    return numbers


def _seeds_of_source(value: Any) -> tuple[int, ...]:
    numbers = _numbers(value, MOST_APART + 1, MOST_APART)
    if numbers is None:
        raise not_allowed(f"a number of seeds, or a list of different whole numbers from 0 to {MOST_APART}")
    return numbers


_OF_SOURCE = [
    {"type": "integer", "minimum": 1, "maximum": MOST_APART + 1},
    distinct_list({"type": "integer", "minimum": 0, "maximum": MOST_APART}),
]
OfSource = Annotated[tuple[int, ...], BeforeValidator(_seeds_of_source), WithJsonSchema({"anyOf": _OF_SOURCE})]


class CrossedSeeds(Section):
    """Seeds for each source of randomness; every combination of them is a seed of the run."""

    initialisation: OfSource = (0,)
    """The first weights, and random features that stay as they are."""
    order: OfSource = (0,)
    """The order of the batches in each epoch."""
    dropout: OfSource = (0,)
    """What dropout leaves out, and all else that is drawn within a step."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        count = prod(len(getattr(self, source)) for source in Source)
        if count > MOST_SEEDS:
            raise refuse("", f"{count:,} combinations of seeds", allowed=f"at most {MOST_SEEDS:,}")
        return self

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every combination, those of the source that varies least often first."""
        return tuple(SourceSeeds(*each).number for each in product(*(getattr(self, source) for source in Source)))


def _kind(value: Any) -> str:
    if not isinstance(value, dict):
        return "<seeds>"
    return "<CrossedSeeds>" if any(source in value for source in Source) else "<SeedRule>"


_SEED = {"type": "integer", "minimum": 0, "maximum": LARGEST_SEED}
_SEEDS = [
    {"type": "integer", "minimum": 1, "maximum": MOST_SEEDS},
    distinct_list({"anyOf": [_SEED, {"type": "string", "pattern": f"^{WORD}$"}]}),
]
Seeds = Annotated[
    Annotated[tuple[int, ...], BeforeValidator(_seeds), WithJsonSchema({"anyOf": _SEEDS}), Tag("<seeds>")]
    | Annotated[SeedRule, Tag("<SeedRule>")]
    | Annotated[CrossedSeeds, Tag("<CrossedSeeds>")],
    Discriminator(_kind),
]


def seeds_of(seeds: tuple[int, ...] | SeedRule | CrossedSeeds) -> tuple[int, ...]:
    """Every seed that a cell may have."""
    return seeds if isinstance(seeds, tuple) else seeds.seeds


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
    """Whether a run of the cell draws nothing from a source. What custom components draw is not known."""
    if source is Source.ORDER:
        return TASKS.definition(spec.task).data.streams
    if source is Source.DROPOUT:
        model, options = spec.model, [value for name, value in spec.options.items() if name.endswith("dropout")]
        return not spec.components and not any([model.dropout, model.inner_dropout, model.output_dropout, *options])
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
                    hint="write `baseline:` into a table; or a half-width, such as until: {bleu: 0.3}",
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

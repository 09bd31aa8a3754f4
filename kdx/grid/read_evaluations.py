"""The evaluations that a grid file asks for, and whether its cells can have them."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from kdx.errors import KdxError
from kdx.grid.evaluations import AskedEvaluation, EvaluationSettings, one_or_several_pairs, resolve_evaluation
from kdx.grid.plan import PlannedCell
from kdx.grid.source import Node

MOST_EVALUATIONS = 100


def read_evaluations(node: Node | None, faults: list[KdxError]) -> list[AskedEvaluation]:
    """Return one for each combination of the values that lists give its settings.

    Args:
        node: what is under `evaluations`, checked by the model of a grid file.
    """
    asked: list[AskedEvaluation] = []
    for name, settings in node.value.items() if node is not None else ():
        choices = [_values(key, value) for key, value in settings.value.items()]
        if len(asked) + prod(map(len, choices)) > MOST_EVALUATIONS:
            assert node is not None
            faults.append(KdxError("too many evaluations", place=node.place, allowed=f"at most {MOST_EVALUATIONS}"))
            break
        for chosen in product(*choices):
            read = Node(settings.place, dict(zip(settings.value, chosen, strict=True)), settings.keys)
            asked.append(AskedEvaluation(name, EvaluationSettings.model_validate(read.plain()), read))
    return asked


def check_evaluations(asked: Sequence[AskedEvaluation], cells: Sequence[PlannedCell]) -> Iterator[KdxError]:
    """Refuse an evaluation that no cell can have. One that some cells can have is made for these alone."""
    specs = {cell.id: cell.spec for cell in cells}.values()
    faults: dict[str, KdxError] = {}
    for evaluation in asked:
        reasons: list[KdxError] = []
        for spec in specs:
            try:
                resolve_evaluation(spec, evaluation)
                break
            except KdxError as error:
                reasons.append(evaluation.in_file(error))
        else:
            faults |= {str(reason): reason for reason in reasons[:1]}
    yield from faults.values()


def _values(key: str, node: Node) -> list[Node]:
    """The values that a setting takes in turn."""
    alone = not isinstance(node.value, list) or (
        key == "longest" and one_or_several_pairs(node.plain()) == [node.plain()]
    )
    return [node] if alone else list(node.value)

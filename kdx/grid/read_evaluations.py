"""Reads the evaluations that a grid file asks for, and reports each fault at its line."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from pydantic import ValidationError

from kdx.errors import KdxError, shortened
from kdx.grid.evaluations import AskedEvaluation, EvaluationSettings, resolve_evaluation
from kdx.grid.messages import located
from kdx.grid.plan import PlannedCell
from kdx.grid.source import Node
from kdx.grid.synonyms import did_you_mean
from kdx.tasks import TASKS

MOST_EVALUATIONS = 100


def read_evaluations(node: Node | None, tasks: Iterable[str], faults: list[KdxError]) -> list[AskedEvaluation]:
    """One for each combination of the values that a list gives a setting.

    Args:
        tasks: those of the grid, which say what an evaluation may set.
        faults: gets everything that is wrong.
    """
    if node is None:
        return []
    found: list[AskedEvaluation] = []
    for name, settings in node.value.items():
        if not isinstance(settings.value, dict):
            problem = f"`{settings}` as evaluation `{shortened(name)}`"
            allowed = "a mapping of settings, such as {length: [128, 256]}"
            faults.append(KdxError(problem, place=settings.place, allowed=allowed))
            continue
        if unknown := list(_unknown(settings, tuple(tasks))):
            faults.extend(unknown)
            continue
        for one in _combinations(settings):
            if len(found) == MOST_EVALUATIONS:
                problem, allowed = "too many evaluations", f"at most {MOST_EVALUATIONS}"
                faults.append(KdxError(problem, place=node.place, allowed=allowed))
                return found
            try:
                found.append(AskedEvaluation(name, EvaluationSettings.model_validate(one.plain()), one))
            except ValidationError as error:
                seen = {str(fault) for fault in faults}
                faults.extend(fault for fault in located(error, one, EvaluationSettings) if str(fault) not in seen)
    return found


def check_evaluations(asked: Sequence[AskedEvaluation], cells: Sequence[PlannedCell], faults: list[KdxError]) -> None:
    """Refuses an evaluation that no cell can have. One that some cells can have is made for these alone."""
    distinct = list({cell.id: cell for cell in cells}.values())
    seen: set[str] = set()
    for one in asked:
        reasons: list[KdxError] = []
        for cell in distinct:
            try:
                resolve_evaluation(cell.spec, one)
                break
            except KdxError as error:
                reasons.append(error)
        else:
            for fault in map(one.in_file, reasons[:1]):
                if str(fault) not in seen:
                    faults.append(fault)
                    seen.add(str(fault))


def _unknown(settings: Node, tasks: Sequence[str]) -> Iterator[KdxError]:
    """Refuses settings that no task of the grid has, and lists without a value."""
    known = tuple(dict.fromkeys(key for task in tasks for key in TASKS.definition(task).evaluation_settings))
    for key, value in settings.value.items():
        if key not in known:
            problem = f"an evaluation of {' or '.join(tasks)} has no setting `{shortened(key)}`"
            yield KdxError(problem, place=settings.key((key,)), allowed=known, hint=did_you_mean(key, known))
        elif value.value == []:
            yield KdxError(f"`{key}` has no values", place=value.place, allowed="at least one")


def _combinations(settings: Node) -> Iterator[Node]:
    """Every combination of the values, with one value for each setting."""
    choices = [[(key, value) for value in _values(key, node)] for key, node in settings.value.items()]
    for chosen in product(*choices):
        yield Node(settings.place, dict(chosen), settings.keys)


def _values(key: str, node: Node) -> list[Node]:
    """The values that a setting takes in turn; a single value of `longest` is itself a pair of numbers."""
    one = not isinstance(node.value, list)
    if one or (key == "longest" and not any(isinstance(inner.value, list) for inner in node.value)):
        return [node]
    return list(node.value)

"""What is measured of a task, recorded with a plan where the task or its corpus comes from outside kdx.

Its results are then read by whoever has the database, without the source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.tasks.difficulty import slice_names, slices_of
from kdx.vocabulary import Direction

_KEY = "task_facts"


@dataclass(frozen=True)
class TaskFacts:
    """Of a task on a corpus."""

    metrics: Mapping[str, Direction]
    """Metrics of the test split, and their good ends."""
    read_like: tuple[str, ...]
    """Tasks of kdx that an evaluation reads as it reads this one: the same kind of data, the same settings."""


def metrics_of(task: str, corpus: str) -> dict[str, Direction]:
    """The metrics of a task on the test split, and their good ends; none are known of an unknown task.

    Some are also measured by slice, such as `accuracy/pairs=5-8`: accuracy by the slices of a generated corpus,
    others by those of the task.
    """
    if task not in TASKS:
        return {}
    known = TASKS.definition(task)
    metrics = known.test_metrics
    sliced = [(metric, one.respect) for one in known.slicings for metric in one.metrics]
    sliced += [("accuracy", respect) for respect in slices_of(corpus) if "accuracy" in metrics]
    by_slice = {f"{metric}/{name}": metrics[metric] for metric, respect in sliced for name in slice_names(respect)}
    return {**metrics, **by_slice}


def recorded_facts(specs: Iterable[CellSpec]) -> dict[str, Any]:
    """What a plan of these cells keeps, as JSON; nothing where all tasks and corpora are of kdx."""
    used = dict.fromkeys((spec.task, spec.data.corpus) for spec in specs)
    outside = [(task, corpus) for task, corpus in used if task in TASKS.outside or corpus in DIFFICULTIES.outside]
    facts = [
        {"task": task, "corpus": corpus, "metrics": metrics_of(task, corpus), "read_like": _read_like(task)}
        for task, corpus in outside
    ]
    return {_KEY: facts} if facts else {}


def read_facts(grid: Mapping[str, Any]) -> dict[tuple[str, str], TaskFacts]:
    """(task, corpus) → what `recorded_facts` kept; nothing where the database holds something else."""
    try:
        return {
            (str(one["task"]), str(one["corpus"])): TaskFacts(
                {str(name): Direction(good) for name, good in one["metrics"].items()}, tuple(map(str, one["read_like"]))
            )
            for one in grid.get(_KEY, ())
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def _read_like(task: str) -> list[str]:
    own = TASKS.definition(task)
    same = (one for one in TASKS.definitions() if one.evaluation_settings == own.evaluation_settings)
    return [one.word for one in same if one.reads == own.reads and one.word not in TASKS.outside]

"""Which code the numbers of a cell depend on. A result is stale where that code has changed since."""

from itertools import chain
from typing import Any

from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.data.corpus import generator_of
from kdx.fingerprint import Fingerprint, fingerprint
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.placement import filter_in, value_in
from kdx.grid.spec import CellSpec
from kdx.metrics import METRICS
from kdx.tasks import TASKS
from kdx.tasks.definition import Task
from kdx.words.family import Family

_TRAINER, _EVALUATOR = "kdx.training.run", "kdx.training.evaluation"


def code_of(spec: CellSpec) -> Fingerprint:
    """Return the code that decides the numbers of this cell's runs: the trainer, its task and data, its components.

    Another component, task or corpus may come or change without making a result of this cell stale.
    """
    return _code_of(spec, _TRAINER)


def evaluation_code_of(spec: CellSpec) -> Fingerprint:
    """Return the code that decides the numbers of evaluations of this cell's runs."""
    return _code_of(spec, _EVALUATOR)


def code_of_evaluation(evaluation: ResolvedEvaluation) -> Fingerprint:
    """Return the code that decides the numbers of an evaluation."""
    if evaluation.metric is None:
        return evaluation_code_of(evaluation.spec)
    return fingerprint(METRICS.modules(evaluation.metric))


def _code_of(spec: CellSpec, root: str) -> Fingerprint:
    task = TASKS.definition(spec.task)
    names = chain([(TASKS, spec.task)], *(_words_of(layer, task) for layer in spec.parts))
    modules = chain.from_iterable(family.modules(name) for family, name in names)
    return fingerprint({root, _reader(task), *modules, *generator_of(spec.data.corpus)})


def _words_of(spec: CellSpec, task: Task) -> list[tuple[Family[Any, Any], str]]:
    """Return the names that a layer computes with."""
    return [
        (KERNELS, spec.kernel),
        (NORMALISERS, spec.normaliser or KERNELS.definition(spec.kernel).normaliser),
        (MIXERS, spec.mixer),
        *((POSITIONS, scheme) for scheme in spec.position),
        *((VALUES, value_in(spec, attention)) for attention in task.attentions),
        *((FILTERS, filter_in(spec, attention)) for attention in task.attentions),
        *([(ENCODINGS, spec.encoding)] if spec.encoding else []),
    ]


def read_code() -> None:
    """Read the sources of all tasks once; processes that are forked afterwards need not."""
    fingerprint(
        {_TRAINER, _EVALUATOR, *map(_reader, TASKS.definitions()), *chain.from_iterable(map(TASKS.modules, TASKS))}
    )


def _reader(task: Task) -> str:
    return task.data.reader.partition(":")[0]

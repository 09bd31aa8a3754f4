"""Which code the numbers of a cell depend on. A result is stale where that code has changed since."""

from functools import cache
from itertools import chain

from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.data.corpus import generator_of
from kdx.fingerprint import Fingerprint, fingerprint
from kdx.grid.placement import filter_in, value_in
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.tasks.definition import Task

_TRAINER, _EVALUATOR = "kdx.training.run", "kdx.training.evaluation"


def code_of(spec: CellSpec) -> Fingerprint:
    """Return the code that decides the numbers of this cell's runs: the trainer, its task and data, its components.

    Another component, task or corpus may come or change without making a result of this cell stale.
    """
    return _code_of(spec, _TRAINER)


def evaluation_code_of(spec: CellSpec) -> Fingerprint:
    """Return the code that decides the numbers of evaluations of this cell's runs."""
    return _code_of(spec, _EVALUATOR)


def _code_of(spec: CellSpec, root: str) -> Fingerprint:
    attentions = TASKS.definition(spec.task).attentions
    return _code_of_words(
        root,
        spec.task,
        spec.data.corpus,
        spec.kernel,
        spec.normaliser or KERNELS.definition(spec.kernel).normaliser,
        spec.mixer,
        tuple(spec.position),
        tuple(value_in(spec, attention) for attention in attentions),
        tuple(filter_in(spec, attention) for attention in attentions),
        spec.encoding,
    )


# Thousands of cells of a grid have a few combinations of names; a custom component has one source in a process.
@cache
def _code_of_words(
    root: str,
    task: str,
    corpus: str,
    kernel: str,
    normaliser: str,
    mixer: str,
    positions: tuple[str, ...],
    values: tuple[str, ...],
    filters: tuple[str, ...],
    encoding: str | None,
) -> Fingerprint:
    parts = [
        TASKS.modules(task),
        KERNELS.modules(kernel),
        NORMALISERS.modules(normaliser),
        MIXERS.modules(mixer),
        *map(POSITIONS.modules, positions),
        *map(VALUES.modules, values),
        *map(FILTERS.modules, filters),
        *([ENCODINGS.modules(encoding)] if encoding else []),
    ]
    return fingerprint({root, _reader(TASKS.definition(task)), *chain.from_iterable(parts), *generator_of(corpus)})


def read_code() -> None:
    """Read the sources of all tasks once; processes that are forked afterwards need not."""
    fingerprint(
        {_TRAINER, _EVALUATOR, *map(_reader, TASKS.definitions()), *chain.from_iterable(map(TASKS.modules, TASKS))}
    )


def _reader(task: Task) -> str:
    return task.data.reader.partition(":")[0]

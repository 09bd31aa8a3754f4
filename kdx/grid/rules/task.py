"""Which settings of model, training, evaluation and selection a task and its data allow."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.mixers import MIXERS
from kdx.grid.field_types import refuse
from kdx.grid.fields import CellFields
from kdx.grid.max_positions import MAX_POSITIONS
from kdx.grid.sections import Data, Select
from kdx.tasks import TASKS
from kdx.tasks.definition import Task
from kdx.vocabulary import Attention, Dictionaries, Embeddings, Inject
from kdx.words.family import cached_over_words


def resolve_task(cell: CellFields) -> None:
    """Settle `model` and `training`."""
    task = TASKS.definition(cell.task)
    if Attention.DECODER_SELF in task.attentions and FILTERS.definition(cell.filter.decoder_self).sees_later:
        allowed = ", ".join(known.word for known in FILTERS.definitions() if not known.sees_later)
        raise refuse("filter.decoder-self", "the decoder would see what it is to predict", allowed=allowed)
    _refuse_memory(cell, task)
    _refuse_foreign(cell, task)
    _settle_embeddings(cell, task)
    if task.data.streams:
        _settle_streams(cell)
    elif task.data.text:
        _refuse_beyond_tables(cell, cell.data.max_tokens, f"write max_tokens: {MAX_POSITIONS}")
    _settle_layers(cell, task)


def _refuse_memory(cell: CellFields, task: Task) -> None:
    if not cell.memory:
        return
    if not task.data.streams:
        allowed = f"0, or task: {' or '.join(_owners('memory'))}"
        raise refuse("memory", f"{task.data.items} have nothing before them to remember", allowed=allowed)
    if cell.inject is Inject.INPUT:
        raise refuse(
            "memory",
            "what is remembered would keep the positions of its own segment",
            hint="write inject: per-layer, or take another position scheme",
        )
    if cell.option("sinks"):
        raise refuse("sinks", "a memory forgets the first tokens of a stream", allowed="0, or memory: 0")
    if not MIXERS.definition(cell.mixer).remembers:
        raise refuse("memory", f"the {cell.mixer} mixer has none", allowed="0")


def _refuse_foreign(cell: CellFields, task: Task) -> None:
    """Refuse settings that only other tasks have."""
    for key, value_in, default in _foreign_settings(task.word):
        if value_in(cell) != default:
            raise refuse(key, f"{cell.task} has no such setting, {' and '.join(_owners(key))} has", hint="remove it")
    data = cell.data
    if not task.data.text:
        own = {"corpus", "seed", "train_examples"}
        for field, info in Data.model_fields.items():
            if field not in own and getattr(data, field) != info.default:
                raise refuse(f"data.{field}", f"{cell.task} reads generated examples, not text", hint="remove it")
    elif data.train_examples is not None:
        raise refuse("data.train_examples", f"{cell.task} reads text", hint="write train_lines")
    if data.dictionaries is Dictionaries.SEPARATE and not task.data.dictionaries:
        raise refuse("data.dictionaries", f"{cell.task} reads one language", allowed="joint")


@cached_over_words
def _foreign_settings(task: str) -> tuple[tuple[str, Callable[[CellFields], Any], Any], ...]:
    """Return the settings that only other tasks have: the key, what gives its value, and its default."""
    keys = dict.fromkeys(key for other in TASKS.definitions() for key in other.settings)
    own = TASKS.definition(task).settings
    return tuple((key, attrgetter(key), _default(key)) for key in keys if key not in own)


def _owners(key: str) -> list[str]:
    return [task.word for task in TASKS.definitions() if key in task.settings]


def _default(key: str) -> Any:
    section, _, field = key.rpartition(".")
    model = CellFields.model_fields[section].annotation if section else CellFields
    assert model is not None
    return model.model_fields[field].default


def _settle_embeddings(cell: CellFields, task: Task) -> None:
    embeddings = cell.model.embeddings
    separate = cell.data.dictionaries is Dictionaries.SEPARATE
    if separate and embeddings is Embeddings.SHARED:
        raise refuse("model.embeddings", "separate dictionaries cannot share one embedding", allowed="tied, separate")
    if embeddings in task.embeddings:
        return
    if embeddings is not Embeddings.SHARED:
        problem = f"{cell.task} has no two embeddings to tie"
        raise refuse("model.embeddings", problem, allowed=", ".join(task.embeddings))
    cell.settle(model=cell.model.model_copy(update={"embeddings": task.embeddings[0]}))


def _settle_streams(cell: CellFields) -> None:
    training, evaluation = cell.training, cell.evaluation
    length = training.length or 128
    if training.batch_tokens % length:
        problem = f"{training.batch_tokens} tokens do not divide into streams of {length}"
        raise refuse("training.batch_tokens", problem)
    if evaluation.memory and not cell.memory:
        raise refuse("evaluation.memory", "a model that was trained without a memory has none", allowed="0")
    if cell.model.cutoffs and training.label_smoothing:
        raise refuse("training.label_smoothing", "an adaptive softmax cannot be smoothed", allowed="0")
    # Positions begin after the longer memory, in training and evaluation alike.
    seen = max(length, evaluation.length or 0) + max(cell.memory, evaluation.memory or 0)
    _refuse_beyond_tables(cell, seen, "shorten what is read at once, or the memory")
    cell.settle(training=training.model_copy(update={"length": length}))


def _refuse_beyond_tables(cell: CellFields, seen: int, hint: str) -> None:
    """Refuse a table of positions or distances that is shorter than the `seen` positions."""
    if cell.encoding and ENCODINGS.definition(cell.encoding).bounded and seen > MAX_POSITIONS:
        problem = f"a learned table has {MAX_POSITIONS} positions, and {seen} are in sight"
        raise refuse("encoding", problem, hint=hint)
    if cell.option("clip") == "none" and seen > MAX_POSITIONS:
        problem = f"a table without a clip ends at {MAX_POSITIONS} positions, and {seen} are in sight"
        raise refuse("clip", problem, allowed="a distance", hint=hint)
    if seen > (cell.option("horizon") or seen):
        problem = f"the weight of cosformer is 0 at {cell.option('horizon')} positions, and {seen} are in sight"
        raise refuse("horizon", problem, allowed=f"{seen} or more", hint=hint)


def _settle_layers(cell: CellFields, task: Task) -> None:
    model = cell.model
    for part, attention in (("encoder", Attention.ENCODER_SELF), ("decoder", Attention.DECODER_SELF)):
        if attention not in task.attentions:
            model = model.model_copy(update={f"{part}_layers": 0})
        elif not getattr(model, f"{part}_layers"):
            problem = f"{cell.task} needs {'an' if part == 'encoder' else 'a'} {part}"
            raise refuse(f"model.{part}_layers", problem, allowed="1 or more")
    cell.settle(model=model)


def resolve_select(cell: CellFields) -> None:
    """Settle `select`; default: the first of the task's metrics."""
    known = TASKS.definition(cell.task).metrics
    metric = cell.select.metric if cell.select else f"valid/{next(iter(known))}"
    split, _, name = metric.rpartition("/")
    if split == "test":
        raise refuse("select.metric", f"`{metric}` selects on the test set", allowed=_valid(known))
    if split not in ("", "valid") or name not in known:
        raise refuse("select.metric", f"unknown validation metric `{metric}`", allowed=_valid(known))
    direction = (cell.select and cell.select.direction) or known[name].direction
    if direction is not known[name].direction:
        good = known[name].direction
        raise refuse("select.direction", f"the good end of {name} is {good}", allowed=good)
    cell.settle(select=Select(metric=f"valid/{name}", direction=direction))


def _valid(names: Iterable[str]) -> str:
    return ", ".join(f"valid/{name}" for name in names)

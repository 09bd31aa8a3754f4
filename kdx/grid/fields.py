"""The fields of a cell: every word that a grid may write, with its default.

`kdx.grid.rules` settles what depends on another field; the definition of a word has its options.
"""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from kdx.attention.encodings import ENCODINGS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.grid.field_types import Count, Follows, Later, Natural, OneOf, Schema, ToList, WithOptions
from kdx.grid.sections import Data, Evaluation, Filter, Model, Select, Training
from kdx.tasks import TASKS
from kdx.vocabulary import (
    Attention,
    Inject,
    Maps,
    Norm,
    OutputGate,
    Projection,
    QKNorm,
    Smoother,
    Space,
    Symmetry,
    ValueProjection,
)


def one_or_many(value: Any) -> Any:
    """A lone word is a list of one; `none` is the empty list."""
    words = value if isinstance(value, list | tuple) else (value,)
    return () if tuple(words) == ("none",) else tuple(words)


class OneOrMany(ToList):
    """Annotates a list of words, which may be one word or `none`."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        none = {"const": "none", "title": "None at all"}
        word = {"anyOf": [handler(core)["items"], none]}
        return {"anyOf": [word, {"type": "array", "items": word}]}


ONE_OR_MANY = OneOrMany(one_or_many)
_Attentions = Annotated[tuple[Attention, ...], ONE_OR_MANY]

# Its validator would be built for it alone, whenever a command starts.
_AS_IN_TRAINING = Evaluation.model_construct()


class FrozenDict(dict[str, Any]):
    """A mapping of plain values that is never changed, so that a cell can be looked up by all that it is."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True))


class CellFields(WithOptions):
    """One choice on each axis, with everything else a run needs, except the seed; options of words are extra keys."""

    task: Annotated[str, OneOf(TASKS)]
    """What a model learns."""
    space: Space | None = None
    """The space of examples that are no text; default: the task's own. None for text."""
    kernel: Annotated[str, OneOf(KERNELS)] = "exponential"
    """The kernel that compares queries with keys."""
    symmetry: Symmetry = Symmetry.ASYMMETRIC
    """Whether queries and keys share one projection."""
    position: Annotated[tuple[Annotated[str, OneOf(POSITIONS, "none")], ...], ONE_OR_MANY] = ()
    """The position schemes that act together, or `none`."""
    encoding: Annotated[str, OneOf(ENCODINGS)] | None = None
    """The absolute vector t; default: sinusoidal. None if nothing uses t."""
    inject: Inject | None = None
    """The place where direct-sum adds t; default: at the input, or per layer if the task is not of text."""
    placement: Annotated[_Attentions | None, Follows("position")] = None
    """The attentions that have positions; default: all of the task's."""
    value: Annotated[Annotated[str, OneOf(VALUES)] | None, Follows("position", "inject")] = None
    """The value function; default: without position, unless the input already carries it."""
    filter: Filter = Field(default_factory=Filter)
    """Which keys a query sees, in each attention."""
    norm: Norm = Norm.POST
    """The place of layer normalisation in a layer."""
    mixer: Annotated[str, OneOf(MIXERS)] = "attention"
    """Self-attention, or the layer that replaces it."""
    normaliser: Annotated[str, OneOf(NORMALISERS)] | None = None
    """How a kernel's values become weights; None: the kernel's own, which is the row sum, for relu-squared
    the length."""
    qk_norm: QKNorm = QKNorm.NONE
    """How queries and keys are normalised before any kernel compares them."""
    kv_heads: Count | None = None
    """Heads of keys and values in every attention, a divisor of the model's; None: the number of the queries' heads."""
    projection: Annotated[Projection, Later("linear")] = Projection.LINEAR
    """What makes queries and keys."""
    value_projection: Annotated[ValueProjection, Later("own")] = ValueProjection.OWN
    """Which projection makes the values."""
    smoother: Annotated[Smoother, Later("local-constant")] = Smoother.LOCAL_CONSTANT
    """The estimator that the weights give of the values."""
    maps: Maps = Maps.SINGLE
    """One attention map per head, or the difference of two."""
    output_gate: OutputGate = OutputGate.NONE
    """What the heads' output is multiplied by before W_o."""
    memory: Annotated[Natural, Follows("position")] = 0
    """Tokens of the segment before that stay visible (Dai et al. 2019); prediction only."""
    layers: Annotated[dict[str, dict[str, Any]], AfterValidator(FrozenDict), Later({})] = Field(
        default_factory=lambda: FrozenDict(), examples=[{"odd": {"position": "none"}}]
    )
    """Choices that override those of the cell in some layers: first, last, odd, even, every 3, a number, or
    one of these after `encoder` or `decoder`."""
    components: Annotated[dict[str, str], AfterValidator(FrozenDict)] = Field(default_factory=lambda: FrozenDict())
    """Word → SHA-256 of its source, of every custom component; kdx itself fills it in."""
    data: Data
    """Which corpus, and how it becomes tokens."""
    model: Model = Field(default_factory=Model)
    """The size of the Transformer."""
    training: Training = Field(default_factory=Training)
    """How the weights are found."""
    evaluation: Evaluation = _AS_IN_TRAINING
    """How validation and test read or write text."""
    select: Select | None = None
    """The validation score that selects; default: the first of the task's metrics, such as BLEU or perplexity."""

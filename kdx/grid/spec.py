"""A cell, fully resolved: everything that decides what a run computes, except its seed.

The fields are the words of a grid file. `CellSpec` fills every default and settles what depends on another field, so
that two spellings of one cell are one cell. What is hashed and how fields may be added later stands in `identity`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from kdx.axes import (
    Attention,
    Direction,
    Embeddings,
    Encoding,
    Filter,
    Inject,
    Kernel,
    Mixer,
    Norm,
    Normaliser,
    Position,
    Precision,
    Scale,
    Schedule,
    Symmetry,
    Tables,
    Task,
    Value,
    Vocabulary,
    XLBias,
)

# The metrics a validation pass can give, and which end of each is good.
METRICS: dict[Task, dict[str, Direction]] = {
    Task.TRANSLATION: {"bleu": Direction.MAX, "loss": Direction.MIN, "perplexity": Direction.MIN},
    Task.PREDICTION: {"perplexity": Direction.MIN, "loss": Direction.MIN, "word_perplexity": Direction.MIN},
}

ATTENTIONS: dict[Task, tuple[Attention, ...]] = {
    Task.TRANSLATION: tuple(Attention),
    Task.PREDICTION: (Attention.DECODER_SELF,),
}

# Schemes that see distances only; Shaw et al. and Dai et al. use them in self-attention alone.
DISTANCES = frozenset(Position) - {Position.NONE, Position.DIRECT_SUM, Position.PRODUCT}
SELF_ATTENTIONS = (Attention.ENCODER_SELF, Attention.DECODER_SELF)
LONGEST = 1024  # positions of a learned encoding


def refuse(field: str, problem: str, *, allowed: str | None = None, hint: str | None = None) -> PydanticCustomError:
    """A fault in how fields fit together, told at `field` (dotted where it lies in a section)."""
    context = {"field": field, "problem": problem, "allowed": allowed, "hint": hint}
    return PydanticCustomError("unfit", "{problem}", context)


def _one_or_many(value: Any) -> Any:
    """A lone word is a list of one; `none` is the empty list."""
    words = value if isinstance(value, list | tuple) else (value,)
    return () if tuple(words) == ("none",) else tuple(words)


# Strict numbers: `yes` is not 1, and "3" is not 3.
Count = Annotated[int, Field(ge=1, strict=True)]
Natural = Annotated[int, Field(ge=0, strict=True)]
Fraction = Annotated[float, Field(ge=0, lt=1, strict=True)]
Positive = Annotated[float, Field(gt=0, strict=True)]


@dataclass(frozen=True)
class Neutral:
    """Annotates a field that was added after the first release: at this value it does not enter the cell's hash."""

    value: Any


class Section(BaseModel):
    """Strict and frozen: no unknown key, no coercion of words or booleans, no NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    def _settle(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


class Filters(Section):
    """The filter of each attention."""

    encoder_self: Filter = Field(Filter.FULL, alias="encoder-self")
    encoder_decoder: Filter = Field(Filter.FULL, alias="encoder-decoder")
    decoder_self: Filter = Field(Filter.CAUSAL, alias="decoder-self")


class Data(Section):
    """Which text, and how it becomes tokens."""

    corpus: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """A built-in generated corpus, or the name under which `kdx data prepare` stored a text."""
    source: str | None = None
    """Language translated from (a file suffix of the corpus); None: the corpus's own direction."""
    target: str | None = None
    """Language translated to."""
    vocabulary: Vocabulary = Vocabulary.WORD
    """What a token is."""
    vocabulary_size: Count | None = None
    """Tokens at most, special ones included; None: every word of the training text (words only)."""
    train_lines: Count | None = None
    """Use the first so many lines of the training text; None: all of them."""
    max_tokens: Count = 128
    """Training pairs with a longer side are left out (translation only); no other split is cut."""
    seed: Natural = 0
    """Seed of a generated corpus; it is not the run's seed, so every run reads the same text."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.vocabulary is Vocabulary.BPE and self.vocabulary_size is None:
            raise refuse("vocabulary_size", "byte pairs need a vocabulary size", hint="write vocabulary_size: 4000")
        if (self.source is None) != (self.target is None):
            raise refuse("source" if self.source else "target", "source and target go together")
        return self


class Model(Section):
    """The size of the Transformer."""

    width: Count = 128
    """Features per token."""
    heads: Count = 4
    encoder_layers: Natural = 2
    """Layers of the encoder; 0 for prediction, which has none."""
    decoder_layers: Count = 2
    inner: Count = 256
    """Width of the feed-forward layer."""
    dropout: Fraction = 0.1
    """On embeddings and on the output of every sublayer."""
    embeddings: Embeddings = Embeddings.SHARED

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.width % self.heads:
            raise refuse(
                "width",
                f"width {self.width} does not divide by {self.heads} heads",
                hint=f"take {self.width // self.heads * self.heads or self.heads}"
                f" or {(self.width // self.heads + 1) * self.heads}",
            )
        return self


class Training(Section):
    """How the weights are found. Every length is in optimiser steps."""

    steps: Count = 1000
    batch_tokens: Count = 1536
    """Target tokens in a batch at most, padding included; for prediction, streams × length."""
    length: Count | None = None
    """Tokens of a stream in one batch (prediction only)."""
    accumulate: Count = 1
    """Batches whose gradients make one step."""
    learning_rate: Positive = 3e-3
    """The peak, reached at the end of the warm-up."""
    warmup: Natural = 200
    schedule: Schedule = Schedule.INVERSE_SQRT
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    """Adam's decay rates."""
    epsilon: Positive = 1e-9
    """Adam's epsilon."""
    weight_decay: Annotated[float, Field(ge=0, strict=True)] = 0.0
    """Decoupled from the gradient."""
    label_smoothing: Fraction = 0.0
    clip: Positive | None = 1.0
    """Largest norm of the gradient; None: no clipping."""
    validate_every: Count | None = None
    """Steps between validations; None: one pass over the training text."""
    record_every: Count = 10
    """Steps between two rows of the training loss."""
    threads: Count = 1
    """CPU threads of one run; another count gives other bits."""
    precision: Precision = Precision.FP32


class Select(Section):
    """Which validation score picks a run's best weights, and a cell's best seed."""

    metric: str
    direction: Direction | None = None


class CellSpec(Section):
    """One choice on each axis, with everything else a run needs, except the seed."""

    task: Task
    kernel: Kernel = Kernel.EXPONENTIAL
    symmetry: Symmetry = Symmetry.ASYMMETRIC
    position: Annotated[tuple[Position, ...], BeforeValidator(_one_or_many)] = ()
    """The schemes that act together; none at all when empty."""
    encoding: Encoding | None = None
    """The absolute vector t; sinusoidal unless said otherwise, None where nothing uses t."""
    inject: Inject | None = None
    """Of direct-sum: at the input unless said otherwise."""
    placement: Annotated[tuple[Attention, ...], BeforeValidator(_one_or_many)] | None = None
    """The attentions that have positions; all of the task's unless said otherwise."""
    value: Value | None = None
    """Without position unless said otherwise, or unless the input already carries it."""
    filter: Filters = Field(default_factory=Filters)
    norm: Norm = Norm.POST
    mixer: Annotated[Mixer, Neutral(Mixer.ATTENTION)] = Mixer.ATTENTION
    """What stands in the place of self-attention."""
    neighbours: Annotated[Natural | None, Neutral(None)] = None
    """Of the convolution: tokens to either side, or back only; 2 unless said otherwise."""
    normaliser: Annotated[Normaliser | None, Neutral(None)] = None
    """None: the kernel's own, which is the row sum but for relu-squared."""
    scale: Annotated[Scale, Neutral(Scale.SCALED)] = Scale.SCALED
    """Whether a dot product is divided by √D (exponential kernel only)."""
    clip: Annotated[Natural | Literal["none"] | None, Neutral(None)] = None
    """Of lookup and table: the distance from which on all share a vector, or `none`; 16 unless said otherwise."""
    sharing: Annotated[Tables | None, Neutral(None)] = None
    """Of lookup and table: a table for each head unless said otherwise, or one for all."""
    xl_bias: Annotated[XLBias | None, Neutral(None)] = None
    """Of relative: Transformer-XL's u and v; learned unless said otherwise or symmetric, which has none."""
    position_dropout: Annotated[Fraction | None, Neutral(None)] = None
    """Of relative: on the distance's sinusoids; 0 unless said otherwise."""
    stride: Annotated[Count | None, Neutral(None)] = None
    """l of the strided and fixed filters, in tokens; 16 unless said otherwise."""
    summary: Annotated[Natural | None, Neutral(None)] = None
    """c of the fixed filter: the last tokens of each block that all later ones see; 2 unless said otherwise."""
    memory: Annotated[Natural, Neutral(0)] = 0
    """Tokens of the segment before that stay visible (Dai et al. 2019); prediction only."""
    data: Data
    model: Model = Field(default_factory=Model)
    training: Training = Field(default_factory=Training)
    select: Select | None = None
    """BLEU for translation and perplexity for prediction unless said otherwise."""

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        self._resolve_position()
        self._resolve_parts()
        self._resolve_task()
        self._resolve_select()
        return self

    def _resolve_position(self) -> None:
        if Position.NONE in self.position:
            raise refuse("position", "`none` does not go together with a scheme", hint="write position: none")
        if len(set(self.position)) < len(self.position):
            raise refuse("position", "a position scheme stands twice")
        has = ATTENTIONS[self.task]
        native = SELF_ATTENTIONS if DISTANCES.issuperset(self.position) else has
        wanted = native if self.placement is None else self.placement
        placement = tuple(attention for attention in has if attention in wanted) if self.position else ()
        position = tuple(scheme for scheme in Position if scheme in self.position) if placement else ()
        summed = Position.DIRECT_SUM in position
        inject = (self.inject or Inject.INPUT) if summed else None
        value = self.value
        if inject is Inject.INPUT:
            # Above the first layer f and t are mixed for good, so the value cannot be free of t.
            if value is Value.WITHOUT_POSITION:
                raise refuse(
                    "value",
                    "direct-sum at the input puts the position into every value",
                    hint="write inject: per-layer to keep f and t apart (Eq. 8)",
                )
            if placement != has:
                raise refuse(
                    "placement",
                    "direct-sum at the input reaches every attention",
                    hint="write inject: per-layer to place it",
                )
            value = value or Value.WITH_POSITION
        value = value or Value.WITHOUT_POSITION
        uses_vector = not DISTANCES.issuperset(position) or value is Value.WITH_POSITION
        encoding = (self.encoding or Encoding.SINUSOIDAL) if uses_vector else None
        if encoding is Encoding.SINUSOIDAL and self.model.width % 2:
            raise refuse("model.width", f"sinusoids need an even width, not {self.model.width}")
        self._settle(position=position, placement=placement, inject=inject, value=value, encoding=encoding)

    def _resolve_parts(self) -> None:
        """Options of parts that the cell does not have come to nothing; those it has get their defaults."""
        tables = Position.LOOKUP in self.position or self.value is Value.TABLE
        relative = Position.RELATIVE in self.position
        filters = {self.filter_in(attention) for attention in ATTENTIONS[self.task]}
        sparse = bool(filters & {Filter.STRIDED, Filter.FIXED})
        symmetric = self.symmetry is Symmetry.SYMMETRIC
        convolution = self.mixer is Mixer.CONVOLUTION
        head_width = self.model.width // self.model.heads
        if relative and symmetric and self.xl_bias is XLBias.LEARNED:
            raise refuse("xl_bias", "with u a symmetric kernel is not symmetric", allowed="none")
        if self.scale is Scale.UNSCALED and self.kernel is not Kernel.EXPONENTIAL:
            raise refuse("scale", f"the {self.kernel} kernel is defined with its scale", allowed="scaled")
        if Position.ROTARY in self.position and head_width % 2:
            raise refuse("model.heads", f"rotary turns pairs of features, and a head has {head_width}")
        if Position.RELATIVE in self.position and self.model.width % 2:
            raise refuse("model.width", f"sinusoids need an even width, not {self.model.width}")
        if self.mixer is not Mixer.ATTENTION and sparse:
            raise refuse("filter", f"the {self.mixer} mixer has no sparse filter", allowed="full, causal")
        stride = (self.stride or 16) if sparse else None
        summary = (2 if self.summary is None else self.summary) if Filter.FIXED in filters else None
        if summary is not None and stride is not None and summary > stride:
            raise refuse("summary", f"{summary} tokens of a block of {stride}", allowed=f"0 to {stride}")
        self._settle(
            neighbours=(2 if self.neighbours is None else self.neighbours) if convolution else None,
            clip=(16 if self.clip is None else self.clip) if tables else None,
            sharing=(self.sharing or Tables.PER_HEAD) if tables else None,
            xl_bias=(self.xl_bias or (XLBias.NONE if symmetric else XLBias.LEARNED)) if relative else None,
            position_dropout=(self.position_dropout or 0.0) if relative else None,
            stride=stride,
            summary=summary,
        )

    def _resolve_task(self) -> None:
        if self.filter.decoder_self is Filter.FULL:
            allowed = ", ".join(filter for filter in Filter if filter is not Filter.FULL)
            raise refuse("filter.decoder-self", "the decoder would see the word that it is to predict", allowed=allowed)
        if self.memory and self.task is not Task.PREDICTION:
            raise refuse("memory", "sentences have nothing before them to remember", allowed="0, or task: prediction")
        if self.memory and self.inject is Inject.INPUT:
            raise refuse(
                "memory",
                "what is remembered would keep the positions of its own segment",
                hint="write inject: per-layer, or take another position scheme",
            )
        if self.memory and self.mixer is not Mixer.ATTENTION:
            raise refuse("memory", f"the {self.mixer} mixer has none", allowed="0")
        prediction = self.task is Task.PREDICTION
        model, training, data = self.model, self.training, self.data
        if prediction:
            if training.batch_tokens % (training.length or 128):
                raise refuse(
                    "training.batch_tokens",
                    f"{training.batch_tokens} tokens do not divide into streams of {training.length or 128}",
                )
            if model.embeddings is Embeddings.SHARED:
                model = model.model_copy(update={"embeddings": Embeddings.TIED})
            model = model.model_copy(update={"encoder_layers": 0})
            training = training.model_copy(update={"length": training.length or 128})
            seen = (training.length or 128) + self.memory
            if self.encoding is Encoding.LEARNED and seen > LONGEST:
                raise refuse("encoding", f"a learned table has {LONGEST} positions, and {seen} are in sight")
        elif not model.encoder_layers:
            raise refuse("model.encoder_layers", "translation needs an encoder", allowed="1 or more")
        elif training.length is not None:
            raise refuse("training.length", "only prediction reads streams of a fixed length", hint="remove it")
        self._settle(model=model, training=training, data=data)

    def _resolve_select(self) -> None:
        known = METRICS[self.task]
        metric = self.select.metric if self.select else f"valid/{next(iter(known))}"
        split, _, name = metric.rpartition("/")
        if split == "test":
            raise refuse("select.metric", f"`{metric}` selects on the test set", allowed=_valid(known))
        if split not in ("", "valid") or name not in known:
            raise refuse("select.metric", f"unknown validation metric `{metric}`", allowed=_valid(known))
        direction = (self.select and self.select.direction) or known[name]
        if direction is not known[name]:
            raise refuse("select.direction", f"the good end of {name} is {known[name]}", allowed=known[name])
        self._settle(select=Select(metric=f"valid/{name}", direction=direction))

    @property
    def selection(self) -> tuple[str, Direction]:
        """The resolved validation metric, such as `valid/bleu`, and its direction."""
        assert self.select is not None and self.select.direction is not None
        return self.select.metric, self.select.direction

    def positions_in(self, attention: Attention) -> tuple[Position, ...]:
        """The schemes that act inside `attention`; a direct sum at the input acts before it."""
        schemes = self.position if self.placement and attention in self.placement else ()
        if attention is Attention.ENCODER_DECODER and not DISTANCES.issuperset(schemes):
            # Beside an absolute scheme a distance stays where it comes from: within one text.
            schemes = tuple(scheme for scheme in schemes if scheme not in DISTANCES)
        return tuple(s for s in schemes if not (s is Position.DIRECT_SUM and self.inject is Inject.INPUT))

    def value_in(self, attention: Attention) -> Value:
        """The value function inside `attention`: t stays where it is placed; at the input it is there already."""
        if self.value is Value.TABLE:
            # A table of distances goes where distances go.
            by_distance = self.placement and DISTANCES.issuperset(self.position)
            places = self.placement if by_distance else SELF_ATTENTIONS
            return Value.TABLE if places and attention in places else Value.WITHOUT_POSITION
        placed = not self.placement or attention in self.placement
        if self.value is Value.WITH_POSITION and self.inject is not Inject.INPUT and placed:
            return Value.WITH_POSITION
        return Value.WITHOUT_POSITION

    def filter_in(self, attention: Attention) -> Filter:
        """M(x_q, S) of `attention`."""
        filters = self.filter
        return {
            Attention.ENCODER_SELF: filters.encoder_self,
            Attention.ENCODER_DECODER: filters.encoder_decoder,
            Attention.DECODER_SELF: filters.decoder_self,
        }[attention]


def _valid(names: Iterable[str]) -> str:
    return ", ".join(f"valid/{name}" for name in names)

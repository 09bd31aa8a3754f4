"""A cell, fully resolved: everything that decides what a run computes, except its seed.

The fields are the words of a grid file. `CellSpec` fills every default and settles what depends on another field, so
that two spellings of one cell are one cell. What is hashed and how fields may be added later stands in `identity`.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from kdx.axes import (
    Attention,
    Dictionaries,
    Direction,
    Embeddings,
    Encoding,
    Filter,
    Inject,
    Kernel,
    Mixer,
    Modality,
    Norm,
    Normaliser,
    Position,
    Scale,
    Sinusoids,
    Space,
    Symmetry,
    Tables,
    Task,
    Value,
    XLBias,
)
from kdx.grid.sections import (
    Count,
    Data,
    Evaluation,
    Filters,
    Fraction,
    Model,
    Natural,
    Neutral,
    Positive,
    Section,
    Select,
    Training,
    refuse,
)

# The metrics a validation pass can give, and which end of each is good.
METRICS: dict[Task, dict[str, Direction]] = {
    Task.TRANSLATION: {
        "bleu": Direction.MAX,
        "loss": Direction.MIN,
        "perplexity": Direction.MIN,
        "bits_per_byte": Direction.MIN,
    },
    Task.PREDICTION: {
        "perplexity": Direction.MIN,
        "loss": Direction.MIN,
        "word_perplexity": Direction.MIN,
        "bits_per_byte": Direction.MIN,
    },
    Task.IMAGE: {"bits_per_dimension": Direction.MIN, "loss": Direction.MIN},
    Task.SET: {"accuracy": Direction.MAX, "loss": Direction.MIN},
    Task.MULTIMODAL: {"accuracy": Direction.MAX, "loss": Direction.MIN},
    Task.TOUR: {"accuracy": Direction.MAX, "loss": Direction.MIN, "length_ratio": Direction.MIN},
}
# Those of a test beside them.
TEST_METRICS: dict[Task, dict[str, Direction]] = METRICS | {
    Task.TRANSLATION: {**METRICS[Task.TRANSLATION], "bleu_detokenised": Direction.MAX},
}

ATTENTIONS: dict[Task, tuple[Attention, ...]] = {
    Task.TRANSLATION: tuple(Attention),
    Task.PREDICTION: (Attention.DECODER_SELF,),
    Task.IMAGE: (Attention.DECODER_SELF,),
    Task.SET: (Attention.ENCODER_SELF,),
    Task.MULTIMODAL: (Attention.ENCODER_SELF,),
    Task.TOUR: (Attention.ENCODER_SELF,),
}

# The spaces in which a task's tokens may be seen, its own first. Text is a sequence and nothing else.
SPACES: dict[Task, tuple[Space, ...]] = {
    Task.IMAGE: (Space.IMAGE, Space.SEQUENCE),
    Task.SET: (Space.SET,),
    Task.MULTIMODAL: (Space.MULTIMODAL, Space.CROSSMODAL, Space.SEQUENCE),
    Task.TOUR: (Space.SET,),
}

# What there is in a space that has less than a sequence.
SCHEMES: dict[Space, tuple[Position, ...]] = {
    Space.IMAGE: (Position.NONE, Position.DIRECT_SUM, Position.PRODUCT),
    Space.SET: (Position.NONE,),
}
VALUES: dict[Space, tuple[Value, ...]] = {
    Space.IMAGE: (Value.WITHOUT_POSITION, Value.WITH_POSITION),
    Space.SET: (Value.WITHOUT_POSITION,),
}

# Schemes that see distances only; Shaw et al. and Dai et al. use them in self-attention alone.
DISTANCES = frozenset(Position) - {Position.NONE, Position.DIRECT_SUM, Position.PRODUCT}
SELF_ATTENTIONS = (Attention.ENCODER_SELF, Attention.DECODER_SELF)
LONGEST = 1024  # positions of a learned encoding, and of a table of distances that has no clip


class Reading(NamedTuple):
    """How a stream is cut for an evaluation."""

    streams: int
    """Read side by side."""
    length: int
    """Tokens of each in a batch."""
    memory: int
    """Tokens before them that stay visible."""


def _one_or_many(value: Any) -> Any:
    """A lone word is a list of one; `none` is the empty list."""
    words = value if isinstance(value, list | tuple) else (value,)
    return () if tuple(words) == ("none",) else tuple(words)


def _distance(value: Any) -> Any:
    if value in (None, "none") or (type(value) is int and value >= 0):
        return value
    raise refuse("", f"`{value}` as clip", allowed="a whole number from 0 on, or none")


class CellSpec(Section):
    """One choice on each axis, with everything else a run needs, except the seed."""

    task: Task
    space: Annotated[Space | None, Neutral(None)] = None
    """In which space examples that are no text are seen: the task's own unless said otherwise; None for text."""
    kernel: Kernel = Kernel.EXPONENTIAL
    symmetry: Symmetry = Symmetry.ASYMMETRIC
    position: Annotated[tuple[Position, ...], BeforeValidator(_one_or_many)] = ()
    """The schemes that act together; none at all when empty."""
    encoding: Encoding | None = None
    """The absolute vector t; sinusoidal unless said otherwise, None where nothing uses t."""
    sinusoids: Annotated[Sinusoids, Neutral(Sinusoids.VASWANI)] = Sinusoids.VASWANI
    """Of a sinusoidal encoding."""
    inject: Inject | None = None
    """Of direct-sum: at the input unless said otherwise; per layer where the task is not of text."""
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
    temperature: Annotated[Positive, Neutral(1.0)] = 1.0
    """What the logarithm of the weight is divided by, beside √D (exponential and rbf only)."""
    clip: Annotated[int | Literal["none"] | None, BeforeValidator(_distance), Neutral(None)] = None
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
    evaluation: Annotated[Evaluation, Neutral(Evaluation())] = Evaluation()
    select: Select | None = None
    """The first of the task's METRICS unless said otherwise: BLEU for translation, perplexity for prediction, …"""

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        self._resolve_space()
        self._resolve_position()
        self._resolve_parts()
        self._resolve_task()
        self._resolve_select()
        return self

    def _resolve_space(self) -> None:
        spaces = SPACES.get(self.task, (Space.SEQUENCE,))
        if self.space not in (None, *spaces):
            raise refuse("space", f"{self.task} is not seen as `{self.space}`", allowed=", ".join(spaces))
        if self.task not in SPACES:
            self._settle(space=None)
            return
        space = self.space or spaces[0]
        schemes, values = SCHEMES.get(space, tuple(Position)), VALUES.get(space, tuple(Value))
        for scheme in self.position:
            if scheme not in schemes:
                problem = f"the space `{space}` has no position `{scheme}`"
                raise refuse("position", problem, allowed=", ".join(schemes))
        if self.value is not None and self.value not in values:
            raise refuse("value", f"the space `{space}` has no value `{self.value}`", allowed=", ".join(values))
        if self.inject is Inject.INPUT:
            raise refuse("inject", f"{self.task} has positions inside each attention only", allowed=Inject.PER_LAYER)
        usual = {"scale": Scale.SCALED, "temperature": 1.0, "sinusoids": Sinusoids.VASWANI}
        for field, only in usual.items():
            if getattr(self, field) != only and space is not Space.SEQUENCE:
                raise refuse(field, f"the space `{space}` has no other {field}", allowed=str(only))
        if space is Space.SET and self.filter.encoder_self is not Filter.FULL:
            raise refuse("filter.encoder-self", "a set has no order that a filter could follow", allowed=Filter.FULL)
        if space is Space.CROSSMODAL and self.mixer is not Mixer.ATTENTION:
            problem = f"the {self.mixer} mixer cannot look from one modality to another"
            raise refuse("mixer", problem, allowed=Mixer.ATTENTION)
        model = self.model
        if space is Space.IMAGE and model.width % 4:
            # Half of the features for the row, half for the column, each in pairs of sine and cosine.
            raise refuse("model.width", f"row and column share the width, and 4 does not divide {model.width}")
        pairs = 2 * len(Modality) * model.heads
        if self.task is Task.MULTIMODAL and model.width % pairs:
            raise refuse(
                "model.width",
                f"each head has pairs of features of each modality, and {pairs} does not divide {model.width}",
            )
        self._settle(space=space)

    def _resolve_position(self) -> None:
        if Position.NONE in self.position:
            raise refuse("position", "`none` does not go together with a scheme", hint="write position: none")
        if len(set(self.position)) < len(self.position):
            raise refuse("position", "a position scheme stands twice")
        has = ATTENTIONS[self.task]
        if self.position and self.placement and not set(self.placement) & set(has):
            raise refuse("placement", f"{self.task} has no {' and no '.join(self.placement)}", allowed=", ".join(has))
        usual = Inject.PER_LAYER if self.task in SPACES else Inject.INPUT
        at_input = Position.DIRECT_SUM in self.position and (self.inject or usual) is Inject.INPUT
        reached = has if at_input else self._attending
        native = SELF_ATTENTIONS if DISTANCES.issuperset(self.position) else has
        wanted = native if self.placement is None else self.placement
        placement = tuple(attention for attention in reached if attention in wanted) if self.position else ()
        position = tuple(scheme for scheme in Position if scheme in self.position) if placement else ()
        summed = Position.DIRECT_SUM in position
        inject = (self.inject or usual) if summed else None
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
        if value is None or not (at_input or reached):
            value = Value.WITHOUT_POSITION
        uses_vector = not DISTANCES.issuperset(position) or value is Value.WITH_POSITION
        encoding = (self.encoding or Encoding.SINUSOIDAL) if uses_vector else None
        if encoding is Encoding.SINUSOIDAL and self.model.width % 2:
            raise refuse("model.width", f"sinusoids need an even width, not {self.model.width}")
        sinusoids = self.sinusoids if encoding is Encoding.SINUSOIDAL else Sinusoids.VASWANI
        self._settle(
            position=position, placement=placement, inject=inject, value=value, encoding=encoding, sinusoids=sinusoids
        )

    def _resolve_parts(self) -> None:
        """Options of parts that the cell does not have come to nothing; those it has get their defaults."""
        tables = Position.LOOKUP in self.position or self.value is Value.TABLE
        relative = Position.RELATIVE in self.position
        foreign = [one.value.replace("-", "_") for one in Attention if one not in ATTENTIONS[self.task]]
        default = Filters()
        self._settle(filter=self.filter.model_copy(update={name: getattr(default, name) for name in foreign}))
        filters = {self.filter_in(attention) for attention in ATTENTIONS[self.task]}
        sparse = bool(filters & {Filter.STRIDED, Filter.FIXED})
        symmetric = self.symmetry is Symmetry.SYMMETRIC
        convolution = self.mixer is Mixer.CONVOLUTION
        head_width = self.model.width // self.model.heads
        if relative and symmetric and self.xl_bias not in (None, XLBias.NONE):
            raise refuse("xl_bias", "with u a symmetric kernel is not symmetric", allowed="none")
        if self.scale is Scale.UNSCALED and self.kernel is not Kernel.EXPONENTIAL:
            raise refuse("scale", f"the {self.kernel} kernel is defined with its scale", allowed="scaled")
        if self.temperature != 1 and self.kernel not in (Kernel.EXPONENTIAL, Kernel.RBF):
            raise refuse("temperature", f"the {self.kernel} kernel has none", allowed="1")
        if Position.ROTARY in self.position and head_width % 2:
            raise refuse("model.heads", f"rotary turns pairs of features, and a head has {head_width}")
        if Position.RELATIVE in self.position and self.model.width % 2:
            raise refuse("model.width", f"sinusoids need an even width, not {self.model.width}")
        if self.mixer is not Mixer.ATTENTION and sparse:
            raise refuse("filter", f"the {self.mixer} mixer has no sparse filter", allowed="full, causal")
        if not self._attending:
            self._settle(
                kernel=Kernel.EXPONENTIAL,
                symmetry=Symmetry.ASYMMETRIC,
                normaliser=None,
                scale=Scale.SCALED,
                temperature=1.0,
            )
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
        has = ATTENTIONS[self.task]
        if Attention.DECODER_SELF in has and self.filter.decoder_self is Filter.FULL:
            allowed = ", ".join(filter for filter in Filter if filter is not Filter.FULL)
            raise refuse("filter.decoder-self", "the decoder would see what it is to predict", allowed=allowed)
        if self.memory and self.task is not Task.PREDICTION:
            what = "examples" if self.task in SPACES else "sentences"
            raise refuse("memory", f"{what} have nothing before them to remember", allowed="0, or task: prediction")
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
        self._refuse_foreign()
        if prediction:
            length = training.length or 128
            if training.batch_tokens % length:
                raise refuse(
                    "training.batch_tokens", f"{training.batch_tokens} tokens do not divide into streams of {length}"
                )
            if model.embeddings is Embeddings.SHARED:
                model = model.model_copy(update={"embeddings": Embeddings.TIED})
            training = training.model_copy(update={"length": length})
            evaluation = self.evaluation
            if evaluation.memory and not self.memory:
                raise refuse("evaluation.memory", "a model that was trained without a memory has none", allowed="0")
            # Positions begin after the longer memory, in training and evaluation alike.
            seen = max(length, evaluation.length or 0) + max(self.memory, evaluation.memory or 0)
            if model.cutoffs and training.label_smoothing:
                raise refuse("training.label_smoothing", "an adaptive softmax cannot be smoothed", allowed="0")
            self._refuse_beyond_tables(seen, "shorten what is read at once, or the memory")
        elif training.length is not None:
            raise refuse("training.length", "only prediction reads streams of a fixed length", hint="remove it")
        if self.task is Task.TRANSLATION:
            self._refuse_beyond_tables(data.max_tokens, f"write max_tokens: {LONGEST}")
        if self.task in SPACES:
            model = model.model_copy(update={"embeddings": Embeddings.SEPARATE})
        for part, attention in (("encoder", Attention.ENCODER_SELF), ("decoder", Attention.DECODER_SELF)):
            if attention not in has:
                model = model.model_copy(update={f"{part}_layers": 0})
            elif not getattr(model, f"{part}_layers"):
                problem = f"{self.task} needs {'an' if part == 'encoder' else 'a'} {part}"
                raise refuse(f"model.{part}_layers", problem, allowed="1 or more")
        self._settle(model=model, training=training, data=data)

    def _refuse_beyond_tables(self, seen: int, hint: str) -> None:
        """What is learned for each position or distance ends somewhere; `seen` positions can come."""
        if self.encoding is Encoding.LEARNED and seen > LONGEST:
            problem = f"a learned table has {LONGEST} positions, and {seen} are in sight"
            raise refuse("encoding", problem, hint=hint)
        if self.clip == "none" and seen > LONGEST:
            problem = f"a table without a clip ends at {LONGEST} positions, and {seen} are in sight"
            raise refuse("clip", problem, allowed="a distance", hint=hint)

    def _refuse_foreign(self) -> None:
        """Settings that only other tasks have."""
        default, evaluation, model = Evaluation(), self.evaluation, self.model
        own = {
            Task.TRANSLATION: ("beam", "valid_beam", "length_penalty", "penalty", "longest"),
            Task.PREDICTION: ("streams", "length", "memory"),
        }
        for task, fields in own.items():
            for field in fields:
                if task is not self.task and getattr(evaluation, field) != getattr(default, field):
                    raise refuse(f"evaluation.{field}", f"{self.task} has no such setting, {task} has")
        if self.task in SPACES:
            for field, info in Data.model_fields.items():
                if field not in ("corpus", "seed", "train_examples") and getattr(self.data, field) != info.default:
                    raise refuse(f"data.{field}", f"{self.task} reads generated examples, not text", hint="remove it")
            if model.embeddings is Embeddings.TIED:
                raise refuse("model.embeddings", f"{self.task} has no two embeddings to tie", allowed="separate")
        elif self.data.train_examples is not None:
            raise refuse("data.train_examples", f"{self.task} reads text", hint="write train_lines")
        if self.task is Task.PREDICTION:
            if self.data.dictionaries is Dictionaries.SEPARATE:
                raise refuse("data.dictionaries", "prediction reads one language", allowed="joint")
            return
        for field in ("cutoffs", "output_dropout"):
            if getattr(model, field):
                raise refuse(f"model.{field}", f"only prediction has {field}", hint="remove it")
        if self.data.dictionaries is Dictionaries.SEPARATE and model.embeddings is Embeddings.SHARED:
            raise refuse(
                "model.embeddings", "separate dictionaries cannot share one embedding", allowed="tied, separate"
            )

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
    def _attending(self) -> tuple[Attention, ...]:
        """The task's attentions that no other mixer stands in for."""
        has = ATTENTIONS[self.task]
        return has if self.mixer is Mixer.ATTENTION else tuple(one for one in has if one not in SELF_ATTENTIONS)

    @property
    def selection(self) -> tuple[str, Direction]:
        """The resolved validation metric, such as `valid/bleu`, and its direction."""
        assert self.select is not None and self.select.direction is not None
        return self.select.metric, self.select.direction

    @property
    def reading(self) -> Reading:
        """How validation and test read a stream (prediction only)."""
        evaluation, training = self.evaluation, self.training
        assert training.length is not None
        return Reading(
            streams=evaluation.streams or training.batch_tokens // training.length,
            length=evaluation.length or training.length,
            memory=self.memory if evaluation.memory is None else evaluation.memory,
        )

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

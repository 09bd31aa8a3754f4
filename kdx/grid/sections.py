"""The sections of a grid: text, model, training, selection; and what all parts of a cell have in common."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import pairwise
from math import inf
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from kdx.attention.filters import FILTERS
from kdx.grid.descriptions import descriptions
from kdx.grid.source import written
from kdx.tasks.corpora import DIFFICULTIES, options_of_corpora
from kdx.vocabulary import (
    Arithmetic,
    Bias,
    Dictionaries,
    Direction,
    Embeddings,
    FeedForwardKind,
    Initialisation,
    LengthPenalty,
    Normalisation,
    Optimiser,
    Precision,
    Schedule,
    VocabularyKind,
)
from kdx.words.family import Family
from kdx.words.option import Option, in_words

Schema = dict[str, Any]
"""A JSON Schema, or a part of one. `#/$defs/…` refers to the definitions of `kdx.grid.schema`."""
IN_A_FILE: Schema = {
    "title": "FILE.py:Class",
    "type": "string",
    "pattern": r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/)*[A-Za-z0-9_][A-Za-z0-9_.-]{0,96}\.py:[A-Za-z_][A-Za-z0-9_]*$",
}
"""A custom component, by its file and class; `kdx.components.find` allows the same."""


def refuse(field: str, problem: str, *, allowed: str | None = None, hint: str | None = None) -> PydanticCustomError:
    """A fault in how fields fit together, told at `field` (dotted where it lies in a section; empty: here)."""
    context = {"field": field, "problem": problem, "allowed": allowed, "hint": hint}
    return PydanticCustomError("unfit", "{problem}", context)


def not_allowed(allowed: str, hint: str | None = None) -> PydanticCustomError:
    """A value that is not one of those allowed; the message names its key."""
    return PydanticCustomError("not_allowed", "{allowed}", {"allowed": allowed, "hint": hint})


def as_list(value: Any) -> Any:
    """A mapping or a text that stands alone, as a list of one."""
    return [value] if isinstance(value, dict | str) else value


class ToList(BeforeValidator):
    """Annotates a list with what makes one of a lone item; in the JSON Schema, an item may stand alone."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        several = handler(core)
        return {"anyOf": [several["items"], several]}


class Bounded:
    """Annotates a strict number (`yes` is not 1, and "3" is not 3); its message has the kind and all the limits."""

    def __init__(self, **limits: int) -> None:
        """Takes any of ge, gt, le and lt."""
        self._limits = limits

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        limits: dict[str, Any] = dict(self._limits)
        # No more than fits into 64 bits, as databases and programs that read JSON have them.
        if source is int and limits.keys().isdisjoint(("le", "lt")):
            limits["lt"] = 2**63
        schema = core_schema.int_schema if source is int else core_schema.float_schema
        allowed = f"{'a whole number' if source is int else 'a number'} {in_words(**self._limits)}"
        return core_schema.custom_error_schema(
            schema(strict=True, **limits),
            "number",
            custom_error_message="{allowed}",
            custom_error_context={"allowed": allowed},
        )

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return handler(core) | {"title": core["custom_error_context"]["allowed"]}


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise not_allowed("a number")
    return value


def _positive_number(value: Any) -> Any:
    if _number(value) <= 0:
        raise not_allowed("a number above 0")
    return value


Count = Annotated[int, Bounded(ge=1)]
Natural = Annotated[int, Bounded(ge=0)]
Fraction = Annotated[float, Bounded(ge=0, lt=1)]
Positive = Annotated[float, Bounded(gt=0)]
NotNegative = Annotated[float, Bounded(ge=0)]
# A whole number stays whole, since a range of whole numbers has whole numbers alone.
Number = Annotated[int | float, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
PositiveNumber = Annotated[
    int | float, BeforeValidator(_positive_number), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
]


def margin(value: Any) -> float | str:
    """A number, or a share with its sign.

    Raises:
        PydanticCustomError: it is neither.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf:
        return float(value)
    if isinstance(value, str) and _SHARE.fullmatch(value) and float(value[:-1]) > 0:
        return value
    allowed = "a number above 0, in units of the metric, or a share of the other score such as 1%"
    raise refuse("", f"`{written(value)}` as margin", allowed=allowed)


_SHARE = re.compile(r"\d+(\.\d+)?%", re.ASCII)
_SHARES = {"type": "string", "pattern": r"^(?=.*[1-9])[0-9]+(\.[0-9]+)?%$"}
Margin = Annotated[
    float | str,
    BeforeValidator(margin),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _SHARES]}),
]
"""How far apart two scores may lie and count as equal: in units of the metric, or as a share of the other one."""


class Follows:
    """Annotates a field that may differ where these factors are compared: a rule or good practice sets it by them."""

    def __init__(self, *factors: str) -> None:
        self.factors = factors


class NoCost:
    """Annotates a field on which neither the time of a step nor the memory of a run depends."""


NO_COST = NoCost()


def distinct_list(item: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a list of different items."""
    return {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}


def word_schema(words: Collection[str], word: str) -> Schema:
    """Return the JSON Schema of one word, with its title, its formula and source where it has them.

    Args:
        words: the words that it is one of; a family has definitions of them.
        word: one of these words, or a member of an enumeration.
    """
    title, texts = "", []
    if isinstance(words, Family):
        known = words.definition(word)
        title, texts = known.title, [getattr(known, text, "") for text in ("formula", "source")]
    elif isinstance(word, StrEnum):
        title = descriptions(type(word)).get(word.name, "").removesuffix(".")
    shown = {"title": title, "description": "\n\n".join(filter(None, texts))}
    return {"const": str(word), **{key: text for key, text in shown.items() if text}}


class OneOf:
    """Annotates a word that must be one of these; the message is that of an enum."""

    def __init__(self, words: Collection[str], *others: str) -> None:
        """Takes the words, after any others; a family of words may grow."""
        self._words, self._others = words, others

    @property
    def words(self) -> tuple[str, ...]:
        """All of them, those from outside kdx as well."""
        return (*self._others, *self._words)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        """Return the schema of the words without the others."""
        custom = [IN_A_FILE] if isinstance(self._words, Family) else []
        return {"anyOf": [*(word_schema(self._words, word) for word in self._words), *custom]}

    def _check(self, value: Any) -> str:
        if isinstance(value, str) and (value in self._words or value in self._others):
            return value
        raise PydanticCustomError("enum", "{expected}", {"expected": ", ".join(f"'{word}'" for word in self.words)})


class Section(BaseModel):
    """Strict and frozen: no unknown key, no coercion of words or booleans, no NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    def settle(self, **values: Any) -> None:
        """Give fields the values that rules find for them; only while the cell is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


class WithOptions(Section):
    """A section that has the options of its words as extra keys, beside its fields."""

    model_config = ConfigDict(extra="allow")

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of its words by name; before they are settled, whatever else was given."""
        return self.__pydantic_extra__ or {}

    def option(self, name: str) -> Any:
        """The choice of an option; None where no word of the section has it."""
        return self.options.get(name)

    def leave_out(self, option: str) -> None:
        """Forget what was given for an option; only while the cell is being made."""
        given = {name: value for name, value in self.options.items() if name != option}
        object.__setattr__(self, "__pydantic_extra__", given)

    def judge_options(self, own: Mapping[str, Option], all_options: Callable[[], Mapping[str, Any]]) -> None:
        """Refuse an option that can have no such value, also where no word of the section takes it.

        Args:
            own: those of its words, by name.
            all_options: those of all words, one or several under a name; they are looked up only where another one is
                given.

        Raises:
            PydanticCustomError: an option cannot be this, or no word at all has it.
        """
        given = {name: value for name, value in self.options.items() if value is not None}
        others = self.options.keys() - own.keys()
        if others and (unknown := others - all_options().keys()):
            name = min(unknown)
            names = (*(info.alias or field for field, info in type(self).model_fields.items()), *own)
            raise PydanticCustomError("unknown_key", "unknown key", {"key": name, "allowed": names})
        for name, value in given.items():
            declared = own[name] if name in own else all_options()[name]
            _judge(declared if isinstance(declared, tuple) else (declared,), value)

    def settle_options(self, own: Mapping[str, Option]) -> None:
        """Give each option of its words its value, and take out those of other words; once they are judged."""
        given = {name: value for name, value in self.options.items() if value is not None}
        values = {name: _option_value(option, given.get(name, option.default)) for name, option in own.items()}
        object.__setattr__(self, "__pydantic_extra__", values)


def _judge(declared: Sequence[Option], given: Any) -> None:
    """Refuse what none of these options may be."""
    for option in declared:
        with suppress(ValueError):
            option.value(given)
            return
    _option_value(declared[0], given)


def _option_value(option: Option, given: Any) -> Any:
    try:
        return option.value(given)
    except ValueError:
        shown = f"`{written(given)}`"
        problem = f"unknown {option.name} {shown}" if option.words else f"{shown} as {option.name}"
        context = {"field": option.name, "problem": problem, "allowed": option.words or option.allowed, "hint": None}
        raise PydanticCustomError("unfit", "{problem}", {**context, "given": given}) from None


class Filter(Section):
    """The filter of each attention."""

    encoder_self: Annotated[str, OneOf(FILTERS)] = Field("full", alias="encoder-self")
    """Of the encoder's tokens to each other (A)."""
    encoder_decoder: Annotated[str, OneOf(FILTERS)] = Field("full", alias="encoder-decoder")
    """Of the decoder's tokens to the encoder's (B)."""
    decoder_self: Annotated[str, OneOf(FILTERS)] = Field("causal", alias="decoder-self")
    """Of the decoder's tokens to each other (C)."""


STORED_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""The name of a stored text; it has up to 64 characters."""


def corpus_name(value: Any, check: ValidatorFunctionWrapHandler) -> str:
    # The name of a file is no name of a stored text, which is a name of a folder.
    return str(value) if isinstance(value, str) and value in DIFFICULTIES.outside else check(value)


class Data(WithOptions):
    """Which text, and how it becomes tokens; or which generated examples, with the options of their corpus."""

    corpus: Annotated[str, WrapValidator(corpus_name), WithJsonSchema({"$ref": "#/$defs/Corpus"})] = Field(
        min_length=1, max_length=64, pattern=STORED_NAME
    )
    """A built-in generated corpus, a class of one's own, or the name under which `kdx data prepare` stored a text."""
    source: str | None = Field(None, examples=["de"])
    """Language translated from (a file suffix of the corpus); None: the corpus's own direction."""
    target: str | None = Field(None, examples=["en"])
    """Language translated to."""
    vocabulary: VocabularyKind = VocabularyKind.WORD
    """What a token is."""
    vocabulary_size: Count | None = None
    """Tokens at most, special ones included; None: every word of the training text (words only)."""
    merges: Count | None = None
    """Merges to learn, of subword-nmt only, whose vocabulary is what they leave."""
    dictionaries: Dictionaries = Dictionaries.JOINT
    """Of parallel text: one vocabulary for both languages, or one for each."""
    train_lines: Count | None = None
    """Use the first so many lines of the training text; None: all of them."""
    train_examples: Count | None = None
    """Training examples of a corpus that is no text; None: its own number."""
    max_tokens: Count = 128
    """Training lines and pairs with a longer side are left out (not of prediction); no other split is cut."""
    seed: Annotated[Natural, NO_COST] = 0
    """Seed of a generated corpus; it is not the run's seed, so every run reads the same text."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.vocabulary is VocabularyKind.BPE and self.vocabulary_size is None:
            raise refuse("vocabulary_size", "byte pairs need a vocabulary size", hint="write vocabulary_size: 4000")
        subword_nmt = self.vocabulary is VocabularyKind.SUBWORD_NMT
        if subword_nmt and self.merges is None:
            raise refuse("merges", "subword-nmt needs a number of merges", hint="write merges: 10000")
        if subword_nmt and self.vocabulary_size is not None:
            raise refuse("vocabulary_size", "the merges of subword-nmt decide the vocabulary's size", hint="remove it")
        if self.merges is not None and not subword_nmt:
            raise refuse("merges", f"a vocabulary of kind {self.vocabulary} has none", allowed="with subword-nmt")
        if (self.source is None) != (self.target is None):
            raise refuse("source" if self.source else "target", "source and target go together")
        own = DIFFICULTIES.definition(self.corpus).options if self.corpus in DIFFICULTIES else ()
        by_name = {option.name: option for option in own}
        self.judge_options(by_name, options_of_corpora)
        self.settle_options(by_name)
        return self


class Model(Section):
    """The size of the Transformer."""

    width: Count = 128
    """Features per token."""
    heads: Annotated[Count, Follows("model.width")] = 4
    """Heads of every attention; a divisor of the width."""
    encoder_layers: Natural = 2
    """Layers of the encoder; 0 where the task has none."""
    decoder_layers: Natural = 2
    """Layers of the decoder; 0 where the task has none."""
    inner: Annotated[Count, Follows("model.width", "model.feed_forward")] = 256
    """Width of the feed-forward layer; with swiglu, of each of its two projections."""
    feed_forward: FeedForwardKind = FeedForwardKind.RELU
    """What stands between the matrices of a feed-forward layer."""
    dropout: Annotated[Fraction, NO_COST] = 0.1
    """On embeddings and on the output of every sublayer."""
    inner_dropout: Annotated[Fraction, NO_COST] = 0.0
    """Inside the feed-forward layer, before its last matrix."""
    output_dropout: Annotated[Fraction, NO_COST] = 0.0
    """On what the last layer gives to the softmax (prediction only)."""
    embeddings: Embeddings = Embeddings.SHARED
    """Which embedding matrices are one."""
    cutoffs: tuple[Count, ...] = ()
    """Of an adaptive softmax (Grave et al. 2017; prediction only): where each cluster of rarer tokens begins, by rank;
    none: a full softmax."""
    bias: Bias = Bias.LEARNED
    """Of the projections of queries, keys, values and outputs in every attention."""
    feed_forward_bias: Bias = Bias.LEARNED
    """Of the matrices of the feed-forward layer."""
    normalisation: Normalisation = Normalisation.LAYER
    """How features are normalised."""
    normalisation_bias: Annotated[Bias, Follows("model.normalisation")] = Bias.LEARNED
    """Of layer normalisation; rms has none."""
    initialisation: Annotated[Initialisation, NO_COST] = Initialisation.XAVIER
    """Where weights begin."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.width % self.heads:
            raise refuse(
                "width",
                f"width {self.width} does not divide by {self.heads} heads",
                hint=f"take {self.width // self.heads * self.heads or self.heads}"
                f" or {(self.width // self.heads + 1) * self.heads}",
            )
        if any(low >= high for low, high in pairwise(self.cutoffs)):
            raise refuse("cutoffs", "cutoffs do not rise", hint="write cutoffs: [20000, 40000, 200000]")
        if self.normalisation is Normalisation.RMS:
            self.settle(normalisation_bias=Bias.NONE)
        return self


class Training(Section):
    """How the weights are found. Every length is in optimiser steps."""

    steps: Annotated[Count, NO_COST] = 1000
    """Optimiser steps of a run."""
    batch_tokens: Count = 1536
    """Target tokens in a batch at most, padding included; for prediction, streams × length; of generated examples, what
    the model reads: pixels, elements, cities, nodes, tokens, or events of all modalities."""
    length: Count | None = None
    """Tokens of a stream in one batch (prediction only)."""
    accumulate: Count = 1
    """Batches whose gradients make one step."""
    learning_rate: Annotated[Positive, NO_COST] = 3e-3
    """The peak, reached at the end of the warm-up."""
    warmup: Annotated[Natural, NO_COST] = 200
    """Steps in which the learning rate rises to its peak."""
    schedule: Annotated[Schedule, NO_COST] = Schedule.INVERSE_SQRT
    """The learning rate after the warm-up."""
    decay: Annotated[Count | None, NO_COST, Follows("training.steps", "training.schedule")] = None
    """Of warmup-stable-decay: the steps at the end of the run in which the rate falls; a tenth of all unless said
    otherwise."""
    final_rate: Annotated[Fraction, NO_COST, Follows("training.schedule")] = 0.0
    """Of cosine and warmup-stable-decay: the rate of the last step, as a share of the peak."""
    optimiser: Optimiser = Optimiser.ADAMW
    """What takes a step along the gradient."""
    betas: Annotated[tuple[Fraction, Fraction], NO_COST] = (0.9, 0.98)
    """Decay rates of AdamW's two means, or Lion's β1 and β2."""
    epsilon: Annotated[Positive, NO_COST, Follows("training.optimiser")] = 1e-9
    """AdamW's epsilon."""
    momentum: Annotated[Fraction, NO_COST, Follows("training.optimiser")] = 0.95
    """Of Muon."""
    weight_decay: Annotated[NotNegative, NO_COST] = 0.0
    """Decoupled from the gradient."""
    label_smoothing: Annotated[Fraction, NO_COST] = 0.0
    """The share of a target that is spread over all tokens, or all classes."""
    clip: Annotated[Positive | None, NO_COST] = 1.0
    """Largest norm of the gradient; None: no clipping."""
    validate_every: Count | None = None
    """Steps between validations; None: one pass over the training text."""
    average: Natural = 0
    """Test the mean of the weights at the last so many validations; 0: the weights of the best validation."""
    record_every: Annotated[Count, NO_COST] = 10
    """Steps between two rows of the training loss."""
    threads: Count = 1
    """CPU threads of one run; another count gives other bits."""
    precision: Precision = Precision.FP32
    """Number format of the forward and backward pass; weights stay in 32 bits."""
    arithmetic: Arithmetic = Arithmetic.EXACT
    """Which algorithms torch may compute with; only exact ones repeat a run bit by bit."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        stable = self.schedule is Schedule.WARMUP_STABLE_DECAY
        decay = (self.decay or max(self.steps // 10, 1)) if stable else None
        if decay and self.warmup + decay > self.steps:
            problem = f"{self.warmup} steps of warm-up and {decay} of decay are more than the {self.steps} of the run"
            raise refuse("decay", problem, hint="shorten the warm-up or the decay")
        self.settle(decay=decay)
        if not stable and self.schedule is not Schedule.COSINE:
            self.settle(final_rate=0.0)
        if self.optimiser is Optimiser.LION:
            self.settle(epsilon=1e-9)
        if self.optimiser is not Optimiser.MUON:
            self.settle(momentum=0.95)
        return self


class Evaluation(Section):
    """How validation and test read or write text. The first four concern translation, the last three prediction."""

    beam: Count = 1
    """Hypotheses kept at each word of a test translation; 1 is greedy."""
    valid_beam: Count = 1
    """The same for validation, which comes often."""
    length_penalty: NotNegative = 1.0
    """a of the penalty below; 0 compares plain log-probabilities."""
    penalty: LengthPenalty = LengthPenalty.LENGTH
    """Of a hypothesis of n tokens, the end mark among them."""
    longest: tuple[NotNegative, Natural] = (2.0, 10)
    """Tokens of a translation at most: so many for each source token, end mark included, and so many more.

    Never more than 1023, which is where learned tables end."""
    streams: Count | None = None
    """Streams read side by side; None: as many as in training."""
    length: Count | None = None
    """Tokens of a stream in one batch; None: as in training."""
    memory: Annotated[Natural | None, Follows("position")] = None
    """Tokens of the segment before that stay visible; None: as in training."""


class Select(Section):
    """Which validation score picks a run's best weights, and a cell's best seed."""

    metric: str = Field(examples=["valid/loss"])
    """A validation metric of the task, such as `valid/bleu`."""
    direction: Direction | None = None
    """Which end of it is the good one; the metric says it itself."""

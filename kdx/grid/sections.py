"""The sections of a grid: text, model, training, selection; and what all parts of a cell have in common."""

from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from kdx.axes import Direction, Embeddings, Filter, Precision, Schedule, Vocabulary


def refuse(field: str, problem: str, *, allowed: str | None = None, hint: str | None = None) -> PydanticCustomError:
    """A fault in how fields fit together, told at `field` (dotted where it lies in a section)."""
    context = {"field": field, "problem": problem, "allowed": allowed, "hint": hint}
    return PydanticCustomError("unfit", "{problem}", context)


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

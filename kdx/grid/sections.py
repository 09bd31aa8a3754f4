"""The sections of a cell: text, model, training, evaluation, selection."""

from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import Field, ValidatorFunctionWrapHandler, WithJsonSchema, WrapValidator, model_validator

from kdx.attention.filters import FILTERS
from kdx.grid.field_types import (
    NO_COST,
    Count,
    Follows,
    Fraction,
    Natural,
    NotNegative,
    OneOf,
    Positive,
    Section,
    WithOptions,
    refuse,
)
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


class Filter(Section):
    """The filter of each attention."""

    encoder_self: Annotated[str, OneOf(FILTERS)] = Field("full", alias="encoder-self")
    """The filter between the encoder's tokens (A)."""
    encoder_decoder: Annotated[str, OneOf(FILTERS)] = Field("full", alias="encoder-decoder")
    """The filter from the decoder's tokens to the encoder's (B)."""
    decoder_self: Annotated[str, OneOf(FILTERS)] = Field("causal", alias="decoder-self")
    """The filter between the decoder's tokens (C)."""


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
    """A built-in generated corpus, a custom class, or the name under which `kdx data prepare` stored a text."""
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
    """Whether the two languages of parallel text share one vocabulary."""
    train_lines: Count | None = None
    """Number of lines of the training text that are used, from the first; None: all of them."""
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
    """Activation of the feed-forward layers."""
    dropout: Annotated[Fraction, NO_COST] = 0.1
    """On embeddings and on the output of every sublayer."""
    inner_dropout: Annotated[Fraction, NO_COST] = 0.0
    """Inside the feed-forward layer, before its last matrix."""
    output_dropout: Annotated[Fraction, NO_COST] = 0.0
    """On what the last layer gives to the softmax (prediction only)."""
    embeddings: Embeddings = Embeddings.SHARED
    """Which embedding matrices are one. Only translation has three: shared becomes tied for prediction, separate
    elsewhere."""
    cutoffs: tuple[Count, ...] = ()
    """Ranks at which clusters of rarer tokens of an adaptive softmax begin (Grave et al. 2017; prediction only); none:
    a full softmax."""
    bias: Bias = Bias.LEARNED
    """Whether the projections of queries, keys, values and outputs of every attention have biases."""
    feed_forward_bias: Bias = Bias.LEARNED
    """Whether the matrices of the feed-forward layer have biases."""
    normalisation: Normalisation = Normalisation.LAYER
    """How features are normalised."""
    normalisation_bias: Annotated[Bias, Follows("model.normalisation")] = Bias.LEARNED
    """Whether layer normalisation has a bias; rms has none."""
    initialisation: Annotated[Initialisation, NO_COST] = Initialisation.XAVIER
    """The distribution of the initial weights."""

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
    """Batches whose gradients make one step; each counts the same, whatever its tokens."""
    learning_rate: Annotated[Positive, NO_COST] = 3e-3
    """The peak, reached at the end of the warm-up."""
    warmup: Annotated[Natural, NO_COST] = 200
    """Steps in which the learning rate rises to its peak."""
    schedule: Annotated[Schedule, NO_COST] = Schedule.INVERSE_SQRT
    """The learning rate after the warm-up."""
    decay: Annotated[Count | None, NO_COST, Follows("training.steps", "training.schedule")] = None
    """Steps at the end of the run in which warmup-stable-decay lowers the rate; default: a tenth of all."""
    final_rate: Annotated[Fraction, NO_COST, Follows("training.schedule")] = 0.0
    """The rate of the last step of cosine and warmup-stable-decay, as a share of the peak."""
    optimiser: Optimiser = Optimiser.ADAMW
    """The optimiser."""
    betas: Annotated[tuple[Fraction, Fraction], NO_COST] = (0.9, 0.98)
    """Decay rates of AdamW's two means, or Lion's β1 and β2."""
    epsilon: Annotated[Positive, NO_COST, Follows("training.optimiser")] = 1e-9
    """AdamW's epsilon."""
    momentum: Annotated[Fraction, NO_COST, Follows("training.optimiser")] = 0.95
    """Muon's momentum."""
    weight_decay: Annotated[NotNegative, NO_COST] = 0.0
    """Decoupled from the gradient."""
    label_smoothing: Annotated[Fraction, NO_COST] = 0.0
    """The share of a target that is spread over all tokens, or all classes."""
    clip: Annotated[Positive | None, NO_COST] = 1.0
    """Largest norm of the gradient; None: no clipping."""
    validate_every: Count | None = None
    """Steps between validations; None: one pass over the training text."""
    average: Natural = 0
    """Number of last validations whose weights are averaged for the test; 0: the weights of the best one."""
    record_every: Annotated[Count, NO_COST] = 10
    """Steps between two rows of the training loss."""
    threads: Count = 1
    """CPU threads of one run; another count gives other bits."""
    precision: Precision = Precision.FP32
    """Number format of the forward and backward pass; weights stay in 32 bits."""
    arithmetic: Arithmetic = Arithmetic.EXACT
    """Which algorithms torch may compute with; only exact ones repeat a run bit by bit."""

    @property
    def shared_steps(self) -> int:
        """The steps that a run of more steps begins with, bit by bit; 0 if its rates depend on the last step.

        The last of them is not counted, since a checkpoint is taken before a step and holds the rate of that step.
        """
        return 0 if self.schedule is Schedule.COSINE else max(self.steps - (self.decay or 0) - 1, 0)

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
    """Hypotheses kept at each word of a translation in validation, which comes often."""
    length_penalty: NotNegative = 1.0
    """Exponent of the length penalty; 0 compares plain log-probabilities."""
    penalty: LengthPenalty = LengthPenalty.LENGTH
    """The penalty of a hypothesis of n tokens, the end mark among them."""
    longest: tuple[NotNegative, Natural] = (2.0, 10)
    """Largest number of tokens of a translation: a multiple of the source tokens, end mark included, and a constant.

    Never more than 1023, which is where learned tables end."""
    streams: Count | None = None
    """Streams read side by side; None: as in training."""
    length: Count | None = None
    """Tokens of a stream in one batch; None: as in training."""
    memory: Annotated[Natural | None, Follows("position")] = None
    """Tokens of the segment before that stay visible; None: as in training."""


class Select(Section):
    """Which validation score picks a run's best weights, and a cell's best seed."""

    metric: str = Field(examples=["valid/loss"])
    """A validation metric of the task, such as `valid/bleu`."""
    direction: Direction | None = None
    """Whether larger or smaller is better; default: the metric's own."""

"""Sequence prediction: a decoder-only Transformer over a stream of text."""

from kdx.tasks.data_kinds import PLAIN_TEXT
from kdx.tasks.definition import Slicing, Task
from kdx.vocabulary import Attention, Direction, Embeddings

TASK = Task(
    word="prediction",
    title="decoder-only sequence prediction",
    data=PLAIN_TEXT,
    metrics={
        "perplexity": Direction.MIN,
        "loss": Direction.MIN,
        "word_perplexity": Direction.MIN,
        "bits_per_byte": Direction.MIN,
    },
    slicings=(
        Slicing(
            respect="context",
            title="number of tokens that a token is predicted from, memory included",
            metrics=("perplexity",),
        ),
        Slicing(
            respect="frequency",
            title="number of times that a token occurs in the training text",
            metrics=("perplexity",),
        ),
    ),
    attentions=(Attention.DECODER_SELF,),
    embeddings=(Embeddings.TIED, Embeddings.SEPARATE),
    settings=(
        "memory",
        "training.length",
        "evaluation.streams",
        "evaluation.length",
        "evaluation.memory",
        "model.cutoffs",
        "model.output_dropout",
    ),
    module="kdx.training.prediction:PredictionModule",
)

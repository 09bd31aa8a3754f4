"""Translation: an encoder–decoder Transformer from one language to another."""

from kdx.tasks.data_kinds import PARALLEL_TEXT
from kdx.tasks.definition import Slicing, Task
from kdx.vocabulary import Attention, Direction, Embeddings

TASK = Task(
    word="translation",
    title="encoder–decoder translation",
    data=PARALLEL_TEXT,
    metrics={
        "bleu": Direction.MAX,
        "loss": Direction.MIN,
        "perplexity": Direction.MIN,
        "bits_per_byte": Direction.MIN,
    },
    only_test={"bleu_detokenised": Direction.MAX},
    slicings=(
        Slicing(
            respect="source-words",
            title="number of words in the source sentence",
            metrics=("bleu", "perplexity"),
        ),
    ),
    attentions=tuple(Attention),
    embeddings=tuple(Embeddings),
    settings=(
        "evaluation.beam",
        "evaluation.valid_beam",
        "evaluation.length_penalty",
        "evaluation.penalty",
        "evaluation.longest",
    ),
    module="kdx.training.translation:TranslationModule",
)

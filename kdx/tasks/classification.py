"""Text classification: an encoder over a line of text, whose label is to be told."""

from kdx.definitions import Option
from kdx.tasks.definition import DataKind, Task
from kdx.vocabulary import Attention, Direction, Embeddings

LABELLED_TEXT = DataKind(
    word="labelled text",
    items="lines",
    reader="kdx.data.labelled:load_labelled",
    suffixes=("txt", "labels"),
)

TASK = Task(
    word="classification",
    title="the label of a line of text",
    data=LABELLED_TEXT,
    metrics={"accuracy": Direction.MAX, "macro_f1": Direction.MAX, "loss": Direction.MIN},
    attentions=(Attention.ENCODER_SELF,),
    embeddings=(Embeddings.SEPARATE,),
    options=(
        Option(
            name="pooling",
            default="mean",
            words=("mean", "first"),
            title="Of classification: a line is the mean of its tokens, or its first token, which begins it.",
        ),
    ),
    module="kdx.training.classification:ClassificationModule",
)

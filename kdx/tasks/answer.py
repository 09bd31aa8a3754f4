"""Answers in generated sequences: recall, induction, copying, arithmetic, read by a decoder."""

from kdx.tasks.data_kinds import EXAMPLES
from kdx.tasks.definition import Task
from kdx.vocabulary import Attention, Direction, Embeddings

TASK = Task(
    word="answer",
    title="the answers in a generated sequence",
    data=EXAMPLES,
    metrics={"accuracy": Direction.MAX, "exact_match": Direction.MAX, "loss": Direction.MIN},
    attentions=(Attention.DECODER_SELF,),
    embeddings=(Embeddings.SEPARATE, Embeddings.TIED),
    module="kdx.training.examples.answer:AnswerModule",
)

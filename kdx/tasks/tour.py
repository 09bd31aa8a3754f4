"""Shortest tours through generated cities."""

from kdx.tasks.data_kinds import EXAMPLES
from kdx.tasks.definition import Task
from kdx.vocabulary import Attention, Direction, Embeddings, Space

TASK = Task(
    word="tour",
    title="the shortest tour through cities",
    data=EXAMPLES,
    metrics={"accuracy": Direction.MAX, "loss": Direction.MIN, "length_ratio": Direction.MIN},
    attentions=(Attention.ENCODER_SELF,),
    spaces=(Space.SET,),
    embeddings=(Embeddings.SEPARATE,),
    module="kdx.training.examples.tour:TourModule",
)

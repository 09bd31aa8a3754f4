"""Classes of generated sets, whose elements have no order."""

from kdx.tasks.data_kinds import EXAMPLES
from kdx.tasks.definition import Task
from kdx.vocabulary import Attention, Direction, Embeddings, Space

TASK = Task(
    word="set",
    title="the class of a set",
    data=EXAMPLES,
    metrics={"accuracy": Direction.MAX, "loss": Direction.MIN},
    attentions=(Attention.ENCODER_SELF,),
    spaces=(Space.SET,),
    embeddings=(Embeddings.SEPARATE,),
    module="kdx.training.examples.set:SetModule",
)

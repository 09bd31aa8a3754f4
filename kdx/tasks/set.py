"""Classes of generated sets, whose elements have no order."""

from kdx.axes import Attention, Direction, Embeddings, Space
from kdx.tasks.data_kinds import EXAMPLES
from kdx.tasks.definition import Task

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

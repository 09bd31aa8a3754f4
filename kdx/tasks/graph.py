"""Relations between the nodes of generated labelled graphs."""

from kdx.tasks.data_kinds import EXAMPLES
from kdx.tasks.definition import Task
from kdx.vocabulary import Attention, Direction, Embeddings, Space

TASK = Task(
    word="graph",
    title="what a node of a labelled graph is to another",
    data=EXAMPLES,
    metrics={"accuracy": Direction.MAX, "loss": Direction.MIN},
    attentions=(Attention.ENCODER_SELF,),
    # As a set, the nodes without their edges.
    spaces=(Space.GRAPH, Space.SET),
    embeddings=(Embeddings.SEPARATE,),
    module="kdx.training.examples.graph:GraphModule",
)

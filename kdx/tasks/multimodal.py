"""Classes of generated streams of several modalities."""

from kdx.tasks.data_kinds import EXAMPLES
from kdx.tasks.definition import Task
from kdx.vocabulary import Attention, Direction, Embeddings, Modality, Space

TASK = Task(
    word="multimodal",
    title="the class of streams of several modalities",
    data=EXAMPLES,
    metrics={"accuracy": Direction.MAX, "loss": Direction.MIN},
    attentions=(Attention.ENCODER_SELF,),
    spaces=(Space.MULTIMODAL, Space.CROSSMODAL, Space.SEQUENCE),
    embeddings=(Embeddings.SEPARATE,),
    # Pairs of features of each modality.
    head_divisor=2 * len(Modality),
    module="kdx.training.examples.multimodal:MultimodalModule",
)

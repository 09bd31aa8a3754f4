"""Image generation: a decoder over the pixels of generated images, one by one."""

from kdx.tasks.data_kinds import EXAMPLES
from kdx.tasks.definition import Task
from kdx.vocabulary import Attention, Direction, Embeddings, Space

TASK = Task(
    word="image",
    title="the pixels of an image, one by one",
    data=EXAMPLES,
    metrics={"bits_per_dimension": Direction.MIN, "loss": Direction.MIN},
    attentions=(Attention.DECODER_SELF,),
    spaces=(Space.IMAGE, Space.SEQUENCE),
    embeddings=(Embeddings.SEPARATE,),
    module="kdx.training.examples.image:ImageModule",
)

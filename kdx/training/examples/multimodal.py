"""Classes of streams of several modalities."""

from kdx.models.multimodal import MultimodalModel
from kdx.training.examples import ExamplesModule


class MultimodalModule(ExamplesModule):
    """The class of streams of several modalities."""

    name = "multimodal"
    attentions = ("encoder-self",)
    spaces = ("multimodal", "crossmodal", "sequence")
    head_divisor = 6  # pairs of features of each modality

    build = MultimodalModel

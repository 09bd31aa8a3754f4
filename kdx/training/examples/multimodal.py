"""Classes of streams of several modalities."""

from kdx.models.multimodal import MultimodalModel
from kdx.training.examples import ExamplesModule


class MultimodalModule(ExamplesModule):
    """Predicts the class of streams."""

    build = MultimodalModel

"""Generation of images: the likelihood of each pixel, given the pixels before it."""

import math
from collections.abc import Mapping
from typing import ClassVar

from kdx.models.image import ImageModel
from kdx.training.examples import ExamplesModule
from kdx.vocabulary import Split


class ImageModule(ExamplesModule):
    """The pixels of an image, each from the pixels before it; the loss is given in bits too, as is usual for images."""

    name = "image"
    metrics: ClassVar[Mapping[str, tuple[str, str, str]]] = {
        "bits_per_dimension": ("min", "bits", "target"),
        "loss": ("min", "nats", "target"),
    }
    attentions = ("decoder-self",)
    spaces = ("image", "sequence")

    unit = "pixels"
    build = ImageModel

    def summarise(self, split: Split) -> dict[str, float]:
        loss = super().summarise(split)["loss"]
        return {"loss": loss, "bits_per_dimension": loss / math.log(2)}

    def definitions(self, split: Split) -> dict[str, str]:
        defined = super().definitions(split)
        return {"loss": defined["loss"], "bits_per_dimension": f"over ln 2: {defined['loss']}"}

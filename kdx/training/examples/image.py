"""Generation of images: how likely each pixel is after those before it."""

import math

from kdx.models.image import ImageModel
from kdx.training.examples import ExamplesModule
from kdx.vocabulary import Split


class ImageModule(ExamplesModule):
    """Predicts each pixel of an image from those before it, and reports the loss in bits, as is usual for images."""

    unit = "pixels"
    build = ImageModel

    def summarise(self, split: Split) -> dict[str, float]:
        loss = super().summarise(split)["loss"]
        return {"loss": loss, "bits_per_dimension": loss / math.log(2)}

    def definitions(self, split: Split) -> dict[str, str]:
        defined = super().definitions(split)
        return {"loss": defined["loss"], "bits_per_dimension": f"over ln 2: {defined['loss']}"}

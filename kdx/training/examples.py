"""The tasks on generated examples: cross-entropy of the class, or of each of the classes, that an example asks for."""

import math

from torch import Tensor, nn
from torch.nn import functional

from kdx.axes import Split, Task
from kdx.data.batching import ExampleBatch
from kdx.grid.spec import CellSpec
from kdx.models.image import ImageModel
from kdx.models.multimodal import MultimodalModel
from kdx.models.set import SetModel
from kdx.models.tour import TourModel, greedy_tours, tour_lengths
from kdx.training.module import TaskModule

MODELS: dict[Task, type[nn.Module]] = {
    Task.IMAGE: ImageModel,
    Task.SET: SetModel,
    Task.MULTIMODAL: MultimodalModel,
    Task.TOUR: TourModel,
}


class ExamplesModule(TaskModule):
    """Classifies, and counts how often the likeliest class is the right one."""

    unit = "examples"

    def __init__(self, spec: CellSpec) -> None:
        super().__init__(spec, MODELS[spec.task](spec))
        self._right = 0

    def loss(self, batch: ExampleBatch) -> Tensor:
        logits = self.model(**batch.inputs).flatten(0, 1).float()
        smoothing = self.spec.training.label_smoothing
        return functional.cross_entropy(logits, batch.targets.flatten(), label_smoothing=smoothing)

    def evaluate(self, batch: ExampleBatch, split: Split) -> None:
        logits = self.model(**batch.inputs)
        nats = functional.cross_entropy(logits.flatten(0, 1).float(), batch.targets.flatten(), reduction="none")
        self.add(nats, len(nats))
        self.measure(batch, logits, batch.targets)

    def _start(self) -> None:
        super()._start()
        self._right = 0

    def measure(self, batch: ExampleBatch, logits: Tensor, targets: Tensor) -> None:
        """Adds what else the task counts: logits (B, T, V), targets (B, T)."""
        self._right += int((logits.argmax(-1) == targets).sum())

    def summarise(self, split: Split) -> dict[str, float]:
        return {"loss": super().summarise(split)["loss"], "accuracy": 100 * self._right / self._targets}

    def definitions(self, split: Split) -> dict[str, str]:
        return {
            "loss": f"mean over {self.unit} of -ln p, in nats, without label smoothing",
            "accuracy": f"{self.unit} for which the likeliest class is the right one, in percent",
        }


class ImageModule(ExamplesModule):
    """Predicts each pixel of an image from those before it, and tells the loss in bits, as it is usual for images."""

    unit = "pixels"

    def summarise(self, split: Split) -> dict[str, float]:
        loss = super().summarise(split)["loss"]
        return {"loss": loss, "bits_per_dimension": loss / math.log(2)}

    def definitions(self, split: Split) -> dict[str, str]:
        defined = super().definitions(split)
        return {"loss": defined["loss"], "bits_per_dimension": f"over ln 2: {defined['loss']}"}


class TourModule(ExamplesModule):
    """Tells the next city of each, and how much longer the tours are that its answers make."""

    unit = "cities"

    def _start(self) -> None:
        super()._start()
        self._ratios: list[float] = []

    def measure(self, batch: ExampleBatch, logits: Tensor, targets: Tensor) -> None:
        super().measure(batch, logits, targets)
        cities = batch.inputs["cities"]
        ratios = tour_lengths(cities, greedy_tours(logits)) / tour_lengths(cities, targets)
        self._ratios += ratios.tolist()

    def summarise(self, split: Split) -> dict[str, float]:
        return {**super().summarise(split), "length_ratio": math.fsum(self._ratios) / len(self._ratios)}

    def definitions(self, split: Split) -> dict[str, str]:
        ratio = (
            "length over the shortest tour's, of going from the first city always to the likeliest not yet seen; mean"
        )
        return {**super().definitions(split), "length_ratio": ratio}


MODULES: dict[Task, type[ExamplesModule]] = {
    Task.IMAGE: ImageModule,
    Task.SET: ExamplesModule,
    Task.MULTIMODAL: ExamplesModule,
    Task.TOUR: TourModule,
}

"""Tours through cities: the next city after each, and the length of the tours."""

import math
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from kdx.data.batching import ExampleBatch
from kdx.models.tour import TourModel, greedy_tours, tour_lengths
from kdx.training.examples import ExamplesModule
from kdx.vocabulary import Split


class TourModule(ExamplesModule):
    """The shortest tour through cities: the next city after each, and how much longer such tours are."""

    name = "tour"
    metrics: ClassVar[Mapping[str, tuple[str, str, str]]] = {
        "accuracy": ("max", "percent", "target"),
        "loss": ("min", "nats", "target"),
        "length_ratio": ("min", "ratio", "example"),
    }
    attentions = ("encoder-self",)
    spaces = ("set",)

    unit = "cities"
    build = TourModel

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

"""Metrics of a run's outputs, such as its translations, that are computed without its model, also long afterwards.

Each has its own file with a class of `kdx.metrics.interfaces.OutputMetric`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.tasks.definition import Measure, Per, Scale
from kdx.vocabulary import Direction
from kdx.words.family import Definition, Family

if TYPE_CHECKING:
    from kdx.metrics.interfaces import OutputMetric


@dataclass(frozen=True)
class MetricDefinition(Definition):
    """See `kdx.metrics.interfaces.OutputMetric`.

    Raises:
        ValueError: a fact is none of the allowed words.
    """

    source: str
    better: str
    scale: str

    def __post_init__(self) -> None:
        for fact, words in {"better": Direction, "scale": Scale}.items():
            if getattr(self, fact) not in [word.value for word in words]:
                raise ValueError(f"`{fact}` is `{getattr(self, fact)}`; allowed: {', '.join(words)}")

    @property
    def measure(self) -> Measure:
        """What it measures, of a whole text."""
        return Measure(Direction(self.better), Scale(self.scale), Per.TEXT)


METRICS: "Family[OutputMetric, MetricDefinition]" = Family(
    "metric",
    MetricDefinition,
    "kdx.metrics.interfaces:OutputMetric",
)

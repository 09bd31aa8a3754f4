"""Metrics, and the scale on which their scores are compared."""

from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, isfinite, log, log1p

from kdx.grid.field_types import Margin
from kdx.tasks.definition import Measure, Per, Scale
from kdx.vocabulary import Direction, Split


@dataclass(frozen=True)
class Metric:
    """A metric and what it measures; it is of the test split unless its name has another."""

    name: str
    measure: Measure

    def __str__(self) -> str:
        return f"{_SPELLED.get(self.name, self.name)} {'↑' if self.direction is Direction.MAX else '↓'}"

    @property
    def direction(self) -> Direction:
        """Its good end."""
        return self.measure.direction

    @property
    def unit(self) -> str:
        """Its name without its split, such as bleu, or accuracy/pairs=5-8."""
        split, _, name = self.name.partition("/")
        return name if split in tuple(Split) else self.name

    @property
    def scale(self) -> str:
        """The unit of differences."""
        return "nats" if self.in_nats else self.unit

    @property
    def scale_in_words(self) -> str:
        """The same as a reader knows it: nats, bits, points of a hundred, or the metric itself, such as BLEU."""
        scale = self.measure.scale
        if self.in_nats or scale in (Scale.NATS, Scale.BITS):
            return "nats" if self.in_nats else scale.value
        return _SPELLED.get(self.whole) or ("points" if scale is Scale.PERCENT else self.unit)

    @property
    def whole(self) -> str:
        """The unit without its slice, such as accuracy."""
        return self.unit.partition("/")[0]

    @property
    def recorded(self) -> str:
        """The name under which runs record it, such as test/bleu."""
        return self.name if self.unit != self.name else f"test/{self.name}"

    @property
    def summed(self) -> tuple[str, float] | None:
        """The quantity that tests add up by document for it, and how often its mean makes a score on the scale of
        comparison; None where its score is no such mean, or of a slice or another split."""
        mean_over_targets = self.measure.per in (Per.TOKEN, Per.TARGET) and self.name == self.whole
        return _SUMMED.get(self.measure.scale) if mean_over_targets else None

    @cached_property
    def in_nats(self) -> bool:
        """Whether scores are compared by their logarithm, since a model gains ratios of perplexities."""
        return self.measure.scale is Scale.PERPLEXITY

    def on_scale(self, score: float) -> float | None:
        """A score on the scale on which it is compared; None if that is not defined, as for an infinite score."""
        if not isfinite(score) or (self.in_nats and score <= 0):
            return None
        return log(score) if self.in_nats else score

    def within(self, bounds: tuple[float, float]) -> tuple[float, float]:
        """An interval of a mean score, cut off at the ends of the metric's scale, where it has any."""
        lowest, highest = _ENDS[self.measure.scale]
        return max(lowest, bounds[0]), min(highest, bounds[1])

    def gain(self, difference: float) -> float:
        """The difference with the sign of an improvement: positive is better."""
        return difference if self.direction is Direction.MAX else -difference

    def margin_on_scale(self, margin: Margin, reference: float) -> float:
        """A margin on the scale on which scores are compared.

        Args:
            reference: the mean to which a margin refers that is a share, or is in perplexities, which are compared in
                nats.
        """
        if isinstance(margin, str):
            share = float(margin.rstrip("%")) / 100
            return log1p(share) if self.in_nats else share * abs(reference)
        return log1p(margin / reference) if self.in_nats else margin


_SPELLED = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
"""Names as papers write them."""
_ENDS = {
    Scale.PERCENT: (0.0, 100.0),
    Scale.PERPLEXITY: (1.0, inf),
    Scale.NATS: (0.0, inf),
    Scale.BITS: (0.0, inf),
    Scale.RATIO: (0.0, inf),
    Scale.OTHER: (-inf, inf),
}
"""The lowest and the highest score that there can be."""
_SUMMED = {Scale.NATS: ("nats", 1.0), Scale.PERPLEXITY: ("nats", 1.0), Scale.PERCENT: ("right", 100.0)}


def ratio(gain: float) -> float:
    """A gain in nats as a ratio of perplexities: below 1 is better."""
    return exp(min(700.0, max(-700.0, -gain)))

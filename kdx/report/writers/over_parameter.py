"""The scores of trials against a parameter that was searched: what the figures of the page and the terminal draw."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from kdx.grid.tuning import Choice, DrawnRange
from kdx.report.selection.searched import SearchedCell
from kdx.report.sheets.searches import value_in_words
from kdx.store.records import TrialState


class TrialPoint(NamedTuple):
    """A trial that completed."""

    number: int
    at: float
    """The parameter; of a list, the place of its value."""
    score: float
    best: bool


@dataclass(frozen=True)
class OverParameter:
    """The scores of a search against one parameter."""

    name: str
    words: tuple[str, ...]
    """The values of a list; none where it is a range."""
    span: tuple[float, float]
    """From the low end to the high end."""
    logarithmic: bool
    points: tuple[TrialPoint, ...]


def over_parameters(one: SearchedCell) -> Iterator[OverParameter]:
    """The scores against each parameter of a search."""
    completed = [(each, each.value) for each in one.trials if each.state is TrialState.COMPLETED]
    scored = [(each, score) for each, score in completed if score is not None and isfinite(score)]
    for name, of in one.search.space.items():
        if isinstance(of, Choice):
            words, span = tuple(map(value_in_words, of.values)), (0.0, len(of.values) - 1.0)
            places = [float(of.values.index(each.parameters[name])) for each, _ in scored]
        else:
            words, span = (), (float(of.low), float(of.high))
            places = [float(each.parameters[name]) for each, _ in scored]
        points = tuple(
            TrialPoint(each.number, at, score, each.number == one.winner.number)
            for at, (each, score) in zip(places, scored, strict=True)
        )
        if points:
            yield OverParameter(name, words, span, isinstance(of, DrawnRange) and of.log, points)

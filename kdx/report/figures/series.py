"""What figures draw: scores against the length that an evaluation read, and against a parameter that was searched."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from kdx.grid.table_layout import EVALUATION
from kdx.grid.tuning import Choice, DrawnRange
from kdx.report.selection.searched import SearchedCell
from kdx.report.sheets.searches import value_in_words
from kdx.report.statistics.metric import Metric
from kdx.report.table.table import Table
from kdx.report.wording import LEVELS, word_of
from kdx.store.records import TrialState

LENGTH = f"{EVALUATION}.length"
AXIS = "tokens of a stream in one segment"
"""What a length is."""


@dataclass(frozen=True)
class Series:
    """The scores of one group of cells, with the band of their seeds."""

    group: str
    """The words that its cells share beside their length."""
    points: tuple[tuple[float, float, float, float], ...]
    """(length, score, the lowest of any seed, the highest), from the lowest length."""


def over_length(table: Table) -> Mapping[Metric, Sequence[Series]]:
    """The series of each metric of which some group has several lengths; nothing where lengths are no factor."""
    layout = table.layout
    if LENGTH not in (*layout.row_factors, *layout.column_factors):
        return {}
    found: dict[Metric, dict[str, list[tuple[float, float, float, float]]]] = {}
    for at, cell in layout.places.items():
        words = dict(layout.header(at))
        length, scores = words.pop(LENGTH), [one.score for one in cell.seeds if one.score is not None]
        if length.isdigit() and cell.value is not None and all(map(isfinite, (cell.value, *scores))):
            group = LEVELS.join(word_of(factor, word) for factor, word in words.items())
            point = (float(length), cell.value, min(scores), max(scores))
            found.setdefault(cell.metric, {}).setdefault(group, []).append(point)
    return {
        metric: [Series(group, tuple(sorted(its))) for group, its in groups.items()]
        for metric, groups in found.items()
        if any(len(its) > 1 for its in groups.values())
    }


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

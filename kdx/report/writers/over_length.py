"""Scores against the length that an evaluation read: what the figures of the page and of the terminal draw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from kdx.grid.table_layout import EVALUATION
from kdx.report.statistics.metric import Metric
from kdx.report.table.table import Table
from kdx.report.wording import LEVELS, word_of

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

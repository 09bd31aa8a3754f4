"""The plots of a table: scores against the length of an evaluation, and against a parameter that was searched."""

from collections.abc import Iterator
from math import isfinite

from kdx.grid.table_layout import EVALUATION
from kdx.grid.tuning import Choice, DrawnRange
from kdx.report.figures.plot import Plot, Point, Series
from kdx.report.selection.searched import SearchedCell
from kdx.report.sheets.listings import value_in_words
from kdx.report.statistics.metric import Metric
from kdx.report.tables import Table
from kdx.report.wording import in_levels
from kdx.store.records import TrialState

LENGTH = f"{EVALUATION}.length"
_TOKENS = "tokens of a stream in one segment"


def over_length(table: Table) -> Iterator[Plot]:
    """The mean score of each metric against the length, of which some group has several; none without that factor."""
    layout = table.layout
    if LENGTH not in (*layout.row_factors, *layout.column_factors):
        return
    groups: dict[Metric, dict[str, list[Point]]] = {}
    for at, cell in layout.places.items():
        words = dict(layout.header(at))
        length, scores = words.pop(LENGTH), [seed.score for seed in cell.seeds if seed.score is not None]
        if length.isdigit() and cell.summary and all(map(isfinite, (cell.summary.mean, *scores))):
            point = Point(float(length), cell.summary.mean, min(scores), max(scores))
            groups.setdefault(cell.metric, {}).setdefault(in_levels(words), []).append(point)
    for metric, its_groups in groups.items():
        if any(len(points) > 1 for points in its_groups.values()):
            series = tuple(Series(group, tuple(sorted(points))) for group, points in its_groups.items())
            yield Plot(
                f"{layout.name}: mean {metric} against the length", _TOKENS, str(metric), series, logarithmic=True
            )


def over_parameters(searched: SearchedCell) -> Iterator[Plot]:
    """The scores of the completed trials of a search against each of its parameters; the best trial has a dot."""
    completed = [(trial, trial.value) for trial in searched.trials if trial.state is TrialState.COMPLETED]
    scored = [(trial, score) for trial, score in completed if score is not None and isfinite(score)]
    for name, space in searched.search.space.items():
        ticks: tuple[str, ...] = ()
        if isinstance(space, Choice):
            ticks, span = tuple(map(value_in_words, space.values)), (0.0, len(space.values) - 1.0)
            places = [float(space.values.index(trial.parameters[name])) for trial, _ in scored]
        else:
            span = float(space.low), float(space.high)
            places = [float(trial.parameters[name]) for trial, _ in scored]
        drawn = [(at, trial, score) for at, (trial, score) in zip(places, scored, strict=True)]
        points = [Point(at, score, score, score) for at, _, score in drawn]
        if points:
            yield Plot(
                title=f"{searched.metric} against {name}",
                x=name,
                y=str(searched.metric),
                series=(Series("a trial", tuple(sorted(points))),),
                x_span=span,
                logarithmic=isinstance(space, DrawnRange) and space.log,
                ticks=ticks,
                dots=tuple((at, score) for at, trial, score in drawn if trial.number == searched.winner.number),
                joined=False,
            )

"""Cells that a search found: the trials that they were found among, and whether an optimum lies at the edge."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, log
from typing import TypeGuard

from pydantic import ValidationError

from kdx.components.registry import meant_by
from kdx.grid.tuning import Choice, Distribution, DrawnRange, Sampler, Search
from kdx.report.statistics.expected_best import BestOf, best_of_draws
from kdx.report.statistics.metric import Metric
from kdx.store.records import SearchRecord, SweepRecord, TrialRecord, TrialState, best_trial

OUTER = 0.1
"""The share of a range, on the scale on which it is drawn, that counts as its edge."""
FARTHER = OUTER / 3
"""The share of a range by which a trial has to lie beyond the winner to show that the optimum does not."""
DECADE = 10.0
LEAST_DRAWS = 2
"""Completed trials without which the expected best of fewer says nothing."""


@dataclass(frozen=True)
class Edge:
    """A winner's parameter at the edge of its range, so that the optimum may lie beyond."""

    upper: bool
    """Whether it is the upper edge."""
    end: float
    beyond: float | None
    """The end of the range to try: as wide again, but at most a decade where it is logarithmic; None for a list, to
    which values beyond its end are to be added."""


@dataclass(frozen=True)
class SearchedCell:
    """A cell that a search found."""

    search: Search
    labels: Mapping[str, str]
    """Axis → choice of the cell."""
    metric: Metric
    """The metric by which it was found, such as valid/bleu."""
    trials: tuple[TrialRecord, ...]
    """The recorded ones, of the number that the sweep asks for."""
    winner: TrialRecord
    """The trial whose cell stands in the table."""

    @property
    def ended(self) -> tuple[TrialRecord, ...]:
        return tuple(trial for trial in self.trials if trial.state is not None)

    def count(self, state: TrialState) -> int:
        return sum(trial.state is state for trial in self.trials)

    @cached_property
    def edges(self) -> Mapping[str, Edge]:
        """Parameter → the edge at which the winner has it; the other parameters are left out, and all of them where no
        trial was worse, since there is no optimum then."""
        if all(trial.state is TrialState.COMPLETED and trial.value == self.winner.value for trial in self.ended):
            return {}
        edges = {name: self._edge(name, distribution) for name, distribution in self.search.space.items()}
        return {name: edge for name, edge in edges.items() if edge}

    @cached_property
    def expected_best(self) -> tuple[BestOf, ...]:
        """The expected best validation score of 1, 2, … trials; none where `without_expected_best` says why."""
        if self.without_expected_best:
            return ()
        completed = (trial.value for trial in self.trials if trial.state is TrialState.COMPLETED)
        scores = sorted((value for value in completed if value is not None), key=self.metric.gain)
        return tuple(best_of_draws(scores))

    @property
    def without_expected_best(self) -> str:
        """Why the expected best of fewer trials is not given; empty where it is."""
        if self.search.tuning.sampler is not Sampler.RANDOM:
            return f"trials of the {self.search.tuning.sampler} sampler are no independent draws"
        if pruned := self.count(TrialState.PRUNED):
            return f"{pruned} pruned trial{'' if pruned == 1 else 's'} lack the score that they would have come to"
        if self.count(TrialState.COMPLETED) < LEAST_DRAWS:
            return "fewer than two trials have completed"
        return ""

    def _edge(self, name: str, distribution: Distribution) -> Edge | None:
        """The edge of a parameter; None where a trial farther out was worse, or nothing is allowed beyond."""
        value = self.winner.parameters.get(name)
        if not _is_number(value):
            return None
        if isinstance(distribution, Choice):
            numbers = sorted(filter(_is_number, distribution.values))
            if len(numbers) < max(2, len(distribution.values)) or value not in (numbers[0], numbers[-1]):
                return None
            upper = value == numbers[-1]
            return self._allowed(name, Edge(upper, float(value), None), _beyond_list(numbers, upper))
        at, low, high = (
            _on_scale(float(number), distribution) for number in (value, distribution.low, distribution.high)
        )
        tried = [_on_scale(float(trial.parameters[name]), distribution) for trial in self.ended]
        width = high - low
        for upper, distance, farther in ((False, at - low, at - min(tried)), (True, high - at, max(tried) - at)):
            if width > 0 and distance <= OUTER * width and farther < FARTHER * width:
                end = distribution.high if upper else distribution.low
                return self._allowed(name, Edge(upper, end, end), _beyond_range(distribution, upper))
        return None

    def _allowed(self, name: str, edge: Edge, values: Iterable[float]) -> Edge | None:
        """The edge with the first of these values that a cell may have beyond it; None if it may have none of them."""
        whole = isinstance(self.winner.parameters[name], int)
        components = {name: sha256 for (_, name), sha256 in self.search.components.items()}
        for value in (value for value in values if value != edge.end):
            with meant_by(components), suppress(ValidationError):
                self.search.cell({**self.winner.parameters, name: int(value) if whole else value})
                return replace(edge, beyond=None if edge.beyond is None else value)
        return None


def searched(record: SearchRecord, metric: Metric) -> SearchedCell | None:
    """What a search has found so far; None if no trial has completed."""
    best = best_trial(record.trials, metric.direction)
    if best is None:
        return None
    return SearchedCell(Search.of(record.search), record.labels, metric, record.trials, best)


def searched_cells(sweep: SweepRecord) -> dict[str, SearchedCell]:
    """Cell id, as the database has it → the search that found it, for cells of a sweep that a search has found."""
    winners: dict[str, SearchedCell] = {}
    for _, winner in _finished(sweep):
        if winner:
            winners.setdefault(str(winner.winner.cell_id), winner)
    return winners


def searches_without_winner(sweep: SweepRecord) -> Iterator[tuple[SearchRecord, int]]:
    """The searches of a sweep whose cell is not found yet, each with the number of its trials that have ended."""
    return ((record, sum(record.ended.values())) for record, winner in _finished(sweep) if winner is None)


def _finished(sweep: SweepRecord) -> Iterator[tuple[SearchRecord, SearchedCell | None]]:
    """Each search of a sweep, with what it found once it is done and its cell is among those that are planned."""
    cells = {cell.id: cell.spec for cell in sweep.cells}
    for record in sweep.searches:
        spec = next((cells[id] for trial in record.trials if (id := trial.cell_id) and id in cells), None)
        winner = None
        if spec is not None and not record.left:
            winner = searched(record, Metric(spec.selection_metric, spec.selection_measure))
        yield record, winner if winner and winner.winner.cell_id in cells else None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _on_scale(value: float, range: DrawnRange) -> float:
    return log(value) if range.log else value


def _beyond_range(range: DrawnRange, upper: bool) -> Iterator[float]:
    """Ends that a wider range may have: as wide again, or by less, since not every number need be allowed.

    A learning rate three decades further out is no advice, so a logarithmic range grows by one at most.
    """
    for share in (1.0, 0.5, 0.25):
        if range.log:
            factor = min(range.high / range.low, DECADE) ** share
            end = range.high * factor if upper else range.low / factor
        else:
            distance = share * (range.high - range.low)
            end = range.high + distance if upper else range.low - distance
        yield float(round(end)) if range.whole else float(f"{end:.4g}")


def _beyond_list(numbers: Sequence[float], upper: bool) -> Iterator[float]:
    """Numbers beyond an end of a list: as far from it as its neighbour, or in the same proportion."""
    end, neighbour = (numbers[-1], numbers[-2]) if upper else (numbers[0], numbers[1])
    yield 2 * end - neighbour
    if neighbour:
        yield end * end / neighbour


def space_in_words(distribution: Distribution) -> str:
    """A parameter's values, such as `0.0001 to 0.01, logarithmic`, or `0.0, 0.1`."""
    if isinstance(distribution, Choice):
        return ", ".join(value if isinstance(value, str) else json.dumps(value) for value in distribution.values)
    text = f"{distribution.low:g} to {distribution.high:g}{', logarithmic' if distribution.log else ''}"
    return text if distribution.step is None else f"{text} by {distribution.step:g}"

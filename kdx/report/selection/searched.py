"""Cells that a search found: the trials that they were found among, and whether an optimum lies at the edge."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log
from typing import Any

from pydantic import ValidationError

from kdx.components.registry import meant_by
from kdx.grid.tuning import Choice, Distribution, DrawnRange, Sampler, Search
from kdx.report.statistics.expected_best import BestOf, best_of_draws
from kdx.report.statistics.metric import Metric
from kdx.store.records import CellRecord, SearchRecord, SweepRecord, TrialRecord, TrialState
from kdx.store.searches import best_trial
from kdx.vocabulary import Direction

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
    """The end of the range."""
    beyond: float | None
    """The end of the range to try: as wide again, but at most a decade where it is logarithmic; None: of a list, to
    which values beyond its end are to be added."""


@dataclass(frozen=True)
class SearchedCell:
    """A cell that a search found."""

    search: Search
    labels: Mapping[str, str]
    """Axis → choice of the cell."""
    metric: Metric
    """By which it was found, such as valid/bleu."""
    trials: tuple[TrialRecord, ...]
    """Those that are recorded, of as many as the sweep asks for."""
    winner: TrialRecord
    """The trial whose cell stands in the table."""

    @property
    def ended(self) -> tuple[TrialRecord, ...]:
        """The trials that have ended."""
        return tuple(one for one in self.trials if one.state is not None)

    def count(self, state: TrialState) -> int:
        """How many of the trials ended so."""
        return sum(one.state is state for one in self.trials)

    @cached_property
    def edges(self) -> Mapping[str, Edge]:
        """Parameter → the edge at which the winner has it; those that it has elsewhere are left out, and all where no
        trial was worse, since there is no optimum then."""
        if all(one.state is TrialState.COMPLETED and one.value == self.winner.value for one in self.ended):
            return {}
        found = {name: self._edge(name, one) for name, one in self.search.space.items()}
        return {name: edge for name, edge in found.items() if edge}

    @cached_property
    def expected_best(self) -> tuple[BestOf, ...]:
        """The expected best validation score of 1, 2, … trials; none where `without_expected_best` says why."""
        if self.without_expected_best:
            return ()
        scores = [one.value for one in self.trials if one.state is TrialState.COMPLETED and one.value is not None]
        return tuple(best_of_draws(sorted(scores, reverse=self.metric.direction is Direction.MIN)))

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

    def overlap(self, seeds: Iterable[int]) -> tuple[int, ...]:
        """The tuning seeds among these of runs."""
        return tuple(sorted({*seeds} & {*self.search.tuning.seeds}))

    def _edge(self, name: str, of: Distribution) -> Edge | None:
        """The edge of a parameter; None where a trial farther out was worse, or nothing is allowed beyond."""
        value = self.winner.parameters.get(name)
        if value is None or not _is_number(value):
            return None
        if isinstance(of, Choice):
            if (
                len(of.values) < 2
                or not all(map(_is_number, of.values))
                or value not in (min(of.values), max(of.values))
            ):
                return None
            upper = value == max(of.values)
            return self._allowed(name, Edge(upper, float(value), None), _beyond_list(sorted(of.values), upper))
        at, low, high = (_on_scale(float(one), of) for one in (value, of.low, of.high))
        tried = [_on_scale(float(one.parameters[name]), of) for one in self.ended]
        width = high - low
        for upper, distance, farther in ((False, at - low, at - min(tried)), (True, high - at, max(tried) - at)):
            if width > 0 and distance <= OUTER * width and farther < FARTHER * width:
                end = of.high if upper else of.low
                return self._allowed(name, Edge(upper, end, end), _beyond_range(of, upper))
        return None

    def _allowed(self, name: str, edge: Edge, values: Iterable[float]) -> Edge | None:
        """The edge with the first of these values that a cell may have beyond it; None: it may have none of them."""
        for value in values:
            if value == edge.end:
                continue
            whole = isinstance(self.winner.parameters[name], int)
            if self._is_cell({**self.winner.parameters, name: int(value) if whole else value}):
                return Edge(edge.upper, edge.end, None if edge.beyond is None else value)
        return None

    def _is_cell(self, parameters: Mapping[str, Any]) -> bool:
        with meant_by({word: sha256 for (_, word), sha256 in self.search.components.items()}):
            try:
                self.search.cell(parameters)
            except ValidationError:
                return False
        return True


def searched(record: SearchRecord, metric: Metric) -> SearchedCell | None:
    """What a search has found so far; None: no trial has completed."""
    best = best_trial(record.trials, metric.direction)
    if best is None:
        return None
    return SearchedCell(Search.of(record.search), record.labels, metric, record.trials, best)


def searched_cells(sweep: SweepRecord) -> dict[str, SearchedCell]:
    """Cell id, as the database has it → the search that found it, for cells of a sweep that a search has found."""
    cells = _cells(sweep)
    found: dict[str, SearchedCell] = {}
    for record in sweep.searches:
        one = _found(record, cells)
        if one is not None:
            found.setdefault(str(one.winner.cell_id), one)
    return found


def searches_without_winner(sweep: SweepRecord) -> Iterator[tuple[SearchRecord, int]]:
    """The searches of a sweep whose cell is not found yet, each with the number of its trials that have ended."""
    cells = _cells(sweep)
    for record in sweep.searches:
        if _found(record, cells) is None:
            yield record, sum(record.ended.values())


def _cells(sweep: SweepRecord) -> dict[str, CellRecord]:
    return {one.id: one for one in sweep.cells}


def _found(record: SearchRecord, cells: Mapping[str, CellRecord]) -> SearchedCell | None:
    """What a search found that is done, if its cell is among those that are planned."""
    tried = [cells[one.cell_id].spec for one in record.trials if one.cell_id and one.cell_id in cells]
    if not tried or record.left:
        return None
    one = searched(record, Metric(tried[0].selection_metric, tried[0].selection_direction))
    return one if one and one.winner.cell_id in cells else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _on_scale(value: float, of: DrawnRange) -> float:
    return log(value) if of.log else value


def _beyond_range(of: DrawnRange, upper: bool) -> Iterator[float]:
    """Ends that a wider range may have: as wide again, or by less, since not every number need be allowed.

    A learning rate three decades further out is no advice, so a logarithmic range grows by one at most.
    """
    for share in (1.0, 0.5, 0.25):
        by = min(of.high / of.low, DECADE) ** share if of.log else share * (of.high - of.low)
        end = (of.high * by if upper else of.low / by) if of.log else (of.high + by if upper else of.low - by)
        yield float(round(end)) if of.whole else float(f"{end:.4g}")


def _beyond_list(numbers: Sequence[float], upper: bool) -> Iterator[float]:
    """Numbers beyond an end of a list: as far from it as its neighbour, or in the same proportion."""
    end, neighbour = (numbers[-1], numbers[-2]) if upper else (numbers[0], numbers[1])
    yield 2 * end - neighbour
    if neighbour:
        yield end * end / neighbour


def space_in_words(of: Distribution) -> str:
    """Such as `0.0001 to 0.01, logarithmic`, or `0.0, 0.1`."""
    if isinstance(of, Choice):
        return ", ".join(one if isinstance(one, str) else json.dumps(one) for one in of.values)
    log_scale = ", logarithmic" if of.log else ""
    return f"{of.low:g} to {of.high:g}{log_scale}" + (f" by {of.step:g}" if of.step is not None else "")

"""Compares the cells of a table with published values.

A published value belongs to every cell that has all of its words; where several values do, the one with the most words
counts. Width and length of training are seldom among the words and are given as scale: the same numbers are not
expected, the same order is. Where a paper has a cell at several widths, the value without one is of the narrowest, and
stands beside our narrowest. A difference from the published number is given only for the same corpus; for another
corpus, or where the paper's file names none, each side's place in the order is given instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.table_layout import Address
from kdx.report.papers.paper_file import NOT_CONVERGE, Paper, PublishedCell
from kdx.report.selection.cells import Cell, State
from kdx.report.statistics.metric import Metric
from kdx.store.records import CellRecord

_WIDTH = "model.width"


@dataclass(frozen=True)
class PublishedPair:
    """A cell and its published value."""

    at: Address
    metric: Metric
    published: float | None
    """None if it diverged."""
    tables: tuple[str, ...]
    """The tables of the paper that have the value."""
    ours: float | None
    """The value in our table; None where there is no score."""
    diverged: bool
    """Whether our cell diverged."""
    note: str = ""
    same_corpus: bool = False
    """Whether both values are of the same corpus."""
    places: tuple[int, int] | None = None
    """The ranks of the published value and of ours, from 1 for the best; equal values share one. None where ours has no
    score yet."""

    @property
    def rank(self) -> tuple[float, float] | None:
        """The published value and ours as numbers to rank; a divergence is the worst. None if ours has no score yet."""
        if self.ours is None and not self.diverged:
            return None
        worst = -self.metric.gain(inf)
        theirs, ours = (
            worst if value is None or not isfinite(value) else value for value in (self.published, self.ours)
        )
        return theirs, ours

    @property
    def gain(self) -> float | None:
        """The gain of our value over the published one on the same corpus: positive is better."""
        if self.published is None or self.ours is None or not self.same_corpus:
            return None
        return self.metric.gain(self.ours - self.published)


@dataclass(frozen=True)
class Agreement:
    """The agreement of our order with the published one, for cells of one task, data and metric."""

    metric: Metric
    task: str
    corpus: str
    n: int
    """Cells that both sides rank; one that diverged ranks last."""
    tau: float | None
    """Kendall's τ-b, from −1 to 1; None where fewer than two cells, or only equal ones, can be ranked."""
    p: float | None
    """The two-sided p-value of independent orders."""


@dataclass(frozen=True)
class PublishedComparison:
    """A paper's values compared with those of a table."""

    paper: Paper
    pairs: tuple[PublishedPair, ...]
    agreement: tuple[Agreement, ...]
    scale: Mapping[str, str]
    """Task → the scale of our runs, in words."""


def compare_with_published(
    places: Mapping[Address, Cell], records: Mapping[str, CellRecord], paper: Paper
) -> PublishedComparison:
    """Compares the cells of a table with what `paper` published for them.

    Args:
        places: where each cell of the table stands.
        records: cell id → the cell as the sweep planned it.
    """
    pairs = {at: pair for at, cell in places.items() if (pair := _pair(at, cell, records[cell.id].spec, paper))}
    if any(_WIDTH in cell.where for table in paper.tables for cell in table.cells):
        widths = {at: int(records[places[at].id].spec.value(_WIDTH)) for at in pairs}
        narrowest: dict[object, int] = {}
        for at, pair in pairs.items():
            value = pair.tables, pair.published
            narrowest[value] = min(widths[at], narrowest.get(value, widths[at]))
        pairs = {at: pair for at, pair in pairs.items() if widths[at] == narrowest[pair.tables, pair.published]}
    # A cell that stands in several places is ranked and counted once.
    comparable: dict[tuple[Metric, str, str], dict[str, PublishedPair]] = {}
    by_task: dict[str, dict[str, Cell]] = {}
    for at, pair in pairs.items():
        cell, spec = places[at], records[places[at].id].spec
        comparable.setdefault((cell.metric, spec.task, repr(spec.value("data"))), {})[cell.id] = pair
        by_task.setdefault(spec.task, {})[cell.id] = cell
    ranks = {id: places for group in comparable.values() for id, places in _places(group).items()}
    return PublishedComparison(
        paper=paper,
        pairs=tuple(replace(pair, places=ranks.get(places[at].id)) for at, pair in pairs.items()),
        agreement=tuple(
            _agreement(metric, task, records[next(iter(group))].spec.corpus, [*group.values()])
            for (metric, task, _), group in comparable.items()
        ),
        scale={task: _scale([records[id].spec for id in cells], [*cells.values()]) for task, cells in by_task.items()},
    )


def _pair(at: Address, cell: Cell, spec: ResolvedSpec, paper: Paper) -> PublishedPair | None:
    """The cell beside the published value that has most of its words; None if there is none, or not a single one."""
    fitting: list[tuple[int, str, PublishedCell, str | None]] = []
    for table in paper.tables:
        for published in table.cells:
            selector = {**table.where, **published.where}
            if published.metric == cell.metric.name and spec.matches(selector):
                corpus = selector.get("data.corpus", paper.corpora.get(spec.task))
                fitting.append((len(selector), table.table, published, corpus))
    most = max((words for words, *_ in fitting), default=0)
    closest = [(published, corpus) for words, _, published, corpus in fitting if words == most]
    values = {published.value for published, _ in closest}
    if len(values) != 1:
        # The file has two numbers for the same words and does not say which one is meant.
        return None
    (value,) = values
    return PublishedPair(
        at=at,
        metric=cell.metric,
        published=None if value == NOT_CONVERGE else float(value),
        tables=tuple(dict.fromkeys(table for _, table, published, _ in fitting if published.value == value)),
        ours=cell.value,
        diverged=cell.state is State.DIVERGED,
        note=" ".join(dict.fromkeys(published.note for published, _ in closest if published.note)),
        same_corpus=all(corpus == spec.corpus for _, corpus in closest),
    )


def _places(pairs: Mapping[str, PublishedPair]) -> dict[str, tuple[int, int]]:
    """Cell id → its place in the published order, and in ours."""
    ranks = {id: pair.rank for id, pair in pairs.items() if pair.rank}
    metric = next(pair.metric for pair in pairs.values())
    theirs, ours = (sorted((rank[side] for rank in ranks.values()), key=metric.gain, reverse=True) for side in (0, 1))
    return {id: (theirs.index(rank[0]) + 1, ours.index(rank[1]) + 1) for id, rank in ranks.items()}


def _agreement(metric: Metric, task: str, corpus: str, pairs: Sequence[PublishedPair]) -> Agreement:
    ranked = [pair.rank for pair in pairs if pair.rank]
    tau = p = None
    if len({theirs for theirs, _ in ranked}) > 1 and len({ours for _, ours in ranked}) > 1:
        # late: scipy takes 0.1 to 0.5 s to import, and few tables need it
        from scipy.stats import kendalltau

        tested = kendalltau(*zip(*ranked, strict=True))
        tau, p = float(tested.statistic), float(tested.pvalue)
    return Agreement(metric, task, corpus, len(ranked), tau, p)


def _scale(specs: Sequence[ResolvedSpec], cells: Sequence[Cell]) -> str:
    """Corpus, size, training and seeds in words; values that differ between cells are joined as `a or b`."""

    def each(values: Sequence[object]) -> str:
        return " or ".join(dict.fromkeys(map(str, values)))

    layers = [
        f"{encoder}+{spec.value('model.decoder_layers')}"
        if (encoder := spec.value("model.encoder_layers"))
        else spec.value("model.decoder_layers")
        for spec in specs
    ]
    lines = {spec.value("data.train_lines") for spec in specs} - {None}
    ended = sorted({cell.completed + cell.diverged for cell in cells})
    return ", ".join(
        (
            each([spec.corpus for spec in specs]) + (f" (first {each(sorted(lines))} training lines)" if lines else ""),
            f"d {each([spec.value('model.width') for spec in specs])}",
            f"{each(layers)} layer{'' if {*layers} == {1} else 's'}",
            f"{each([spec.value('training.steps') for spec in specs])} steps",
            f"n = {each(ended)} seed{'' if ended == [1] else 's'}",
        )
    )

"""Compares the cells of a table with published values.

A published value belongs to every cell that has all of its words; where several values do, the one with the most words
counts. Width and length of training are not among the words and are given as scale: the same numbers are not expected,
the same order is. A difference from the published number is given only for the same corpus; for another corpus, or
where the paper's file names none, each side's place in the order is given instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.table_layout import Address
from kdx.report.papers.paper_file import NOT_CONVERGE, Paper, PublishedCell
from kdx.report.selection.cells import Cell, State
from kdx.report.statistics.metric import Metric
from kdx.store.records import CellRecord
from kdx.vocabulary import Direction


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
    """A remark on the published value."""
    same_corpus: bool = False
    """Whether both values are of the same corpus."""
    places: tuple[int, int] | None = None
    """The ranks of the published value and of ours, from 1 for the best; equal values share one. None where ours has no
    score yet."""

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
    published = [(named.table, {**named.where, **one.where}, one) for named in paper.tables for one in named.cells]
    met: dict[Address, _Met] = {}
    # A cell that stands in several places is ranked and counted once.
    comparable: dict[tuple[Metric, str, str], dict[str, tuple[Cell, _Met]]] = {}
    by_task: dict[str, dict[str, Cell]] = {}
    for at, cell in places.items():
        spec = records[cell.id].spec
        if one := _met(cell, spec, published, paper.corpora):
            met[at] = one
            comparable.setdefault((cell.metric, spec.task, repr(spec.value("data"))), {})[cell.id] = cell, one
            by_task.setdefault(spec.task, {})[cell.id] = cell
    ranks = {id: those for its in comparable.values() for id, those in _places(its).items()}
    return PublishedComparison(
        paper=paper,
        pairs=tuple(
            PublishedPair(
                at=at,
                metric=places[at].metric,
                published=one.value,
                tables=one.tables,
                ours=places[at].value,
                diverged=places[at].state is State.DIVERGED,
                note=one.note,
                same_corpus=one.same_corpus,
                places=ranks.get(places[at].id),
            )
            for at, one in met.items()
        ),
        agreement=tuple(
            _agreement(metric, task, records[next(iter(its))].spec.corpus, [*its.values()])
            for (metric, task, _), its in comparable.items()
        ),
        scale={task: _scale([records[id].spec for id in its], [*its.values()]) for task, its in by_task.items()},
    )


@dataclass(frozen=True)
class _Met:
    """The published value of a cell."""

    value: float | None
    tables: tuple[str, ...]
    note: str
    same_corpus: bool


def _met(
    cell: Cell,
    spec: ResolvedSpec,
    published: Sequence[tuple[str, Mapping[str, str], PublishedCell]],
    corpora: Mapping[str, str],
) -> _Met | None:
    fitting = [
        (len(selector), name, one, selector.get("data.corpus", corpora.get(spec.task)))
        for name, selector, one in published
        if one.metric == cell.metric.name and spec.matches(selector)
    ]
    most = max((words for words, *_ in fitting), default=0)
    closest = [(name, one, corpus) for words, name, one, corpus in fitting if words == most]
    values = {one.value for _, one, _ in closest}
    if len(values) != 1:
        # The file has two numbers for the same words and does not say which one is meant.
        return None
    (value,) = values
    return _Met(
        value=None if value == NOT_CONVERGE else float(value),
        tables=tuple(dict.fromkeys(name for _, name, one, _ in fitting if one.value == value)),
        note=" ".join(dict.fromkeys(one.note for _, one, _ in closest if one.note)),
        same_corpus=all(corpus == spec.corpus for _, _, corpus in closest),
    )


def _rank(cell: Cell, met: _Met) -> tuple[float, float] | None:
    """The published value and ours as numbers to rank; a divergence is the worst. None if ours has no score yet."""
    ours = cell.value
    if ours is None and cell.state is not State.DIVERGED:
        return None
    worst = float("-inf") if cell.metric.direction is Direction.MAX else float("inf")
    theirs, our = (worst if value is None or not isfinite(value) else value for value in (met.value, ours))
    return theirs, our


def _places(cells: Mapping[str, tuple[Cell, _Met]]) -> dict[str, tuple[int, int]]:
    """Cell id → its place in the published order, and in ours."""
    ranks = {id: rank for id, those in cells.items() if (rank := _rank(*those))}
    metric = next(cell.metric for cell, _ in cells.values())
    theirs, ours = (sorted((rank[side] for rank in ranks.values()), key=metric.gain, reverse=True) for side in (0, 1))
    return {id: (theirs.index(rank[0]) + 1, ours.index(rank[1]) + 1) for id, rank in ranks.items()}


def _agreement(metric: Metric, task: str, corpus: str, cells: Sequence[tuple[Cell, _Met]]) -> Agreement:
    ranked = [rank for one in cells if (rank := _rank(*one))]
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

"""Published values beside those of a table.

A published cell meets every cell that has all of its words; of several that do, the one with the most words. What the
words do not say, the width and the length of training, is told as scale: the numbers themselves are not to be expected
again, their order is. A difference from the published number is told of the same corpus alone; of another, or where the
paper's file names none, each side's place in the order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from kdx.axes import Direction
from kdx.grid.cell_selector import matches
from kdx.report.papers.paper_file import NOT_CONVERGE, Paper, PublishedCell
from kdx.report.selection.cells import Cell, Metric, State
from kdx.report.table.layout import Address
from kdx.store.records import CellRecord

if TYPE_CHECKING:
    from kdx.report.table.table import Table


@dataclass(frozen=True)
class Pair:
    """A cell and the published one that it meets."""

    at: Address
    metric: Metric
    published: float | None
    """None: it did not converge."""
    tables: tuple[str, ...]
    """Where it was published."""
    ours: float | None
    """What stands in our table; None where no score does."""
    diverged: bool
    """Whether ours did not converge."""
    note: str = ""
    """What a reader has to know of the published value."""
    same_corpus: bool = False
    """Whether both numbers are of the same corpus."""
    places: tuple[int, int] | None = None
    """The published value's place among those that it is ranked with, from 1 for the best, and ours; equal values share
    one. None where ours has no score yet."""

    @property
    def gain(self) -> float | None:
        """Ours over the published value, of the same corpus: positive is better."""
        if self.published is None or self.ours is None or not self.same_corpus:
            return None
        return self.metric.gain(self.ours - self.published)


@dataclass(frozen=True)
class Agreement:
    """Whether comparable cells, those of one task, data and metric, come in the published order."""

    metric: Metric
    task: str
    corpus: str
    n: int
    """Cells that both sides rank; one that did not converge ranks last."""
    tau: float | None
    """Kendall's τ-b, from −1 to 1; None where fewer than two cells, or only equal ones, can be ranked."""
    p: float | None
    """That the orders have nothing to do with each other, two-sided."""


@dataclass(frozen=True)
class Beside:
    """A paper beside a table."""

    paper: Paper
    pairs: tuple[Pair, ...]
    agreement: tuple[Agreement, ...]
    scale: Mapping[str, str]
    """Task → at what scale ours ran, in words."""


def beside(table: "Table", paper: Paper, cells: Sequence[CellRecord]) -> Beside:
    """What `paper` published for the cells of `table`.

    Args:
        cells: of the sweep.
    """
    specs = {cell.id: cell.spec for cell in cells}
    published = [(named.table, {**named.where, **one.where}, one) for named in paper.tables for one in named.cells]
    pairs: list[Pair] = []
    # A cell that stands in several places is ranked and counted once.
    comparable: dict[tuple[Metric, str, str], dict[str, Pair]] = {}
    by_task: dict[str, dict[str, Cell]] = {}
    for at, cell in table.places.items():
        spec = specs[cell.id]
        pair = _pair(at, cell, spec, published, paper.corpora)
        if pair:
            pairs.append(pair)
            comparable.setdefault((cell.metric, spec["task"], repr(spec["data"])), {})[cell.id] = pair
            by_task.setdefault(spec["task"], {})[cell.id] = cell
    places = {id: ranks for its in comparable.values() for id, ranks in _places(its).items()}
    return Beside(
        paper=paper,
        pairs=tuple(replace(pair, places=places.get(table.places[pair.at].id)) for pair in pairs),
        agreement=tuple(
            _agreement(metric, task, str(specs[next(iter(its))]["data"]["corpus"]), [*its.values()])
            for (metric, task, _), its in comparable.items()
        ),
        scale={task: _scale([specs[one] for one in its], [*its.values()]) for task, its in by_task.items()},
    )


def _pair(
    at: Address,
    cell: Cell,
    spec: Mapping[str, Any],
    published: Sequence[tuple[str, Mapping[str, str], PublishedCell]],
    corpora: Mapping[str, str],
) -> Pair | None:
    met = [
        (len(where), name, one, where.get("data.corpus", corpora.get(spec["task"])))
        for name, where, one in published
        if one.metric == cell.metric.name and matches(where, spec)
    ]
    if not met:
        return None
    most = max(words for words, *_ in met)
    values = {one.value for words, _, one, _ in met if words == most}
    if len(values) > 1:
        # Two numbers for the same words: the file does not say which one is meant.
        return None
    (value,) = values
    return Pair(
        at=at,
        metric=cell.metric,
        published=None if value == NOT_CONVERGE else float(value),
        tables=tuple(dict.fromkeys(name for _, name, one, _ in met if one.value == value)),
        ours=cell.value,
        diverged=cell.state is State.NOT_CONVERGE,
        note=" ".join(dict.fromkeys(one.note for words, _, one, _ in met if words == most and one.note)),
        same_corpus=all(corpus == spec["data"]["corpus"] for words, *_, corpus in met if words == most),
    )


def _rank(pair: Pair) -> tuple[float, float] | None:
    """What both sides are ranked by; None where ours has no score yet. What did not converge is the worst."""
    if pair.ours is None and not pair.diverged:
        return None
    worst = float("-inf") if pair.metric.direction is Direction.MAX else float("inf")
    theirs, ours = (worst if value is None or not isfinite(value) else value for value in (pair.published, pair.ours))
    return theirs, ours


def _places(pairs: Mapping[str, Pair]) -> dict[str, tuple[int, int]]:
    """Cell → its place in the published order, and in ours."""
    ranks = {id: rank for id, pair in pairs.items() if (rank := _rank(pair))}
    metric = next(iter(pairs.values())).metric
    theirs, ours = (sorted((rank[side] for rank in ranks.values()), key=metric.gain, reverse=True) for side in (0, 1))
    return {id: (theirs.index(rank[0]) + 1, ours.index(rank[1]) + 1) for id, rank in ranks.items()}


def _agreement(metric: Metric, task: str, corpus: str, pairs: Sequence[Pair]) -> Agreement:
    ranked = [rank for one in pairs if (rank := _rank(one))]
    tau = p = None
    if len({theirs for theirs, _ in ranked}) > 1 and len({ours for _, ours in ranked}) > 1:
        from scipy.stats import kendalltau

        tested = kendalltau(*zip(*ranked, strict=True))
        tau, p = float(tested.statistic), float(tested.pvalue)
    return Agreement(metric, task, corpus, len(ranked), tau, p)


def _scale(specs: Sequence[Mapping[str, Any]], cells: Sequence[Cell]) -> str:
    """Corpus, size, training and seeds in words; what differs between cells stands as `a or b`."""

    def each(values: Sequence[object]) -> str:
        return " or ".join(dict.fromkeys(map(str, values)))

    layers = [
        f"{spec['model']['encoder_layers']}+{spec['model']['decoder_layers']}"
        if spec["model"]["encoder_layers"]
        else spec["model"]["decoder_layers"]
        for spec in specs
    ]
    lines = {spec["data"]["train_lines"] for spec in specs} - {None}
    ended = sorted({cell.completed + cell.diverged for cell in cells})
    return ", ".join(
        (
            each([spec["data"]["corpus"] for spec in specs])
            + (f" (first {each(sorted(lines))} training lines)" if lines else ""),
            f"d {each([spec['model']['width'] for spec in specs])}",
            f"{each(layers)} layers",
            f"{each([spec['training']['steps'] for spec in specs])} steps",
            f"n = {each(ended)} seed{'' if ended == [1] else 's'}",
        )
    )

"""Published values beside those of a table.

A published cell meets every cell that has all of its words; of several that do, the one with the most words. What the
words do not say, the corpus, the width and the length of training, is told as scale: the numbers themselves are not to
be expected again, their order is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from kdx.axes import Direction
from kdx.grid.where import matches
from kdx.report.cells import Cell, Metric, State
from kdx.report.layout import Address
from kdx.report.papers import NOT_CONVERGE, Paper, PublishedCell
from kdx.store.records import CellRecord

if TYPE_CHECKING:
    from kdx.report.table import Table


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

    @property
    def gain(self) -> float | None:
        """Ours over the published value: positive is better."""
        return None if self.published is None or self.ours is None else self.metric.gain(self.ours - self.published)


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
        pair = _pair(at, cell, spec, published)
        if pair:
            pairs.append(pair)
            comparable.setdefault((cell.metric, spec["task"], repr(spec["data"])), {})[cell.id] = pair
            by_task.setdefault(spec["task"], {})[cell.id] = cell
    return Beside(
        paper=paper,
        pairs=tuple(pairs),
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
) -> Pair | None:
    met = [
        (len(where), name, one)
        for name, where, one in published
        if one.metric == cell.metric.name and matches(where, spec)
    ]
    if not met:
        return None
    most = max(words for words, _, _ in met)
    values = {one.value for words, _, one in met if words == most}
    if len(values) > 1:
        # Two numbers for the same words: the file does not say which one is meant.
        return None
    (value,) = values
    return Pair(
        at=at,
        metric=cell.metric,
        published=None if value == NOT_CONVERGE else float(value),
        tables=tuple(dict.fromkeys(name for _, name, one in met if one.value == value)),
        ours=cell.value,
        diverged=cell.state is State.NOT_CONVERGE,
        note=" ".join(dict.fromkeys(one.note for words, _, one in met if words == most and one.note)),
    )


def _agreement(metric: Metric, task: str, corpus: str, pairs: Sequence[Pair]) -> Agreement:
    def rank(value: float | None) -> float:
        worst = float("-inf") if metric.direction is Direction.MAX else float("inf")
        return worst if value is None or not isfinite(value) else value

    ranked = [(rank(one.published), rank(one.ours)) for one in pairs if one.ours is not None or one.diverged]
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

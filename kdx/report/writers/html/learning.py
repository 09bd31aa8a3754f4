"""The learning curves of a page, cell by cell."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite, isnan
from typing import Any

from markupsafe import Markup

from kdx.report.figures.charts import OVERLAY, plotted
from kdx.report.figures.plot import Plot, Point, Series, scale
from kdx.report.selection.cells import Cell
from kdx.report.sheets.scores import cell_anchor
from kdx.report.statistics.metric import Metric
from kdx.store.records import CurveRecord, RunRecord, SweepRecord

Curves = Mapping[int, Mapping[str, CurveRecord]]
"""Run id → metric → curve."""

LOSS = "train/loss"

_MOST_TOGETHER, _BEST_TOGETHER = 8, 4
"""Most cells whose curves lie over each other in one chart, and how many of them are the best where there are more;
baselines come next."""
_MOST_STEPS, _FEWEST_STEPS, _ALL_STEPS = 120, 30, 12_000
"""Steps of one curve at most and at least, and of all curves of the page: more cells make coarser curves."""


def curves_wanted(sweep: SweepRecord) -> set[str]:
    """The metrics whose curves the page of a sweep shows."""
    return {LOSS, *(cell.spec.selection_metric for cell in sweep.cells)}


def figures_of_curves(
    cells: Mapping[str, tuple[Cell, str]],
    runs: Mapping[int, RunRecord],
    curves: Curves,
    baselines: Collection[str],
) -> list[dict[str, Any]]:
    """The cells in groups of one validation metric, each with the curves of that metric and of the training loss.

    Args:
        baselines: ids of the cells that others are compared with.
    """
    groups: dict[Metric, list[tuple[Cell, str]]] = {}
    for cell, title in cells.values():
        groups.setdefault(cell.selected_by, []).append((cell, title))
    most = max(_FEWEST_STEPS, min(_MOST_STEPS, _ALL_STEPS // max(1, 2 * len(cells))))
    sections = []
    for metric, members in groups.items():
        plots = {
            name: {
                cell.id: Series(title, points)
                for cell, title in members
                if (points := _seeds_together(cell, name, curves, most))
            }
            for name in (metric.name, LOSS)
        }
        x_span = scale([point.x for series in plots.values() for drawn in series.values() for point in drawn.points])
        charts: dict[str, list[Markup]] = {}
        together, every = [], True
        for name, series in plots.items():
            title = name if name == LOSS else str(metric)
            spanned = Plot(title, "step", "", tuple(series.values()), x_span=x_span).spanned()
            if spanned is None:
                continue
            for cell, _ in members:
                if cell.id in series:
                    dots = _tested(cell, runs) if name == metric.name else ()
                    own = replace(spanned, series=(series[cell.id],), dots=dots)
                    charts.setdefault(cell.id, []).append(Markup(plotted(own)))
            shown = _together([cell for cell, _ in members if cell.id in series], baselines)
            every &= len(shown) == len(series)
            if len(shown) > 1:
                # Another axis than that of each cell: a cell that is not shown may have failed far off.
                drawn = Plot(title, "step", "", tuple(series[cell] for cell in shown), x_span=x_span)
                chart = plotted(drawn, OVERLAY)
                together.append(Markup(chart))
        figures = [
            {"href": f"#{cell_anchor(cell)}", "caption": title, "outcomes": _outcomes(cell), "svgs": charts[cell.id]}
            for cell, title in members
            if cell.id in charts
        ]
        which = "All cells together." if every else "The best cells and baselines together."
        overlaid = {"caption": which, "svgs": together}
        sections += [{"title": metric, "figures": figures, "together": overlaid}] if figures else []
    return sections


def _together(cells: Sequence[Cell], baselines: Collection[str]) -> list[str]:
    """The cells whose curves lie over each other, in the order of the table."""

    def gain(cell: Cell) -> float:
        mean = cell.summary.mean if cell.summary else None
        return -inf if mean is None or isnan(mean) else cell.metric.gain(mean)

    ranked = sorted(cells, key=gain, reverse=True)
    rest = sorted(ranked[_BEST_TOGETHER:], key=lambda cell: cell.id not in baselines)
    chosen = {cell.id for cell in [*ranked[:_BEST_TOGETHER], *rest][:_MOST_TOGETHER]}
    return [cell.id for cell in cells if cell.id in chosen]


def _seeds_together(cell: Cell, name: str, curves: Curves, most: int) -> tuple[Point, ...]:
    """One metric of a cell over training: the values of the selected seed, or of the first while none is selected, in
    the range of all seeds.

    Steps are grouped into up to `most` intervals of equal length; the range keeps the lowest and the highest value of
    each. Values that are not finite are left out.
    """
    of_seeds = [curves.get(seed.run_id, {}).get(name) for seed in cell.seeds if seed.invalidated is None]
    shown = [curve for curve in of_seeds if curve]
    finite = [point for curve in shown for point in zip(curve.steps, curve.values, strict=True) if isfinite(point[1])]
    selected = curves.get(cell.run_id, {}).get(name) if cell.run_id is not None else next(iter(shown), None)
    line = dict(zip(selected.steps, selected.values, strict=True)) if selected else {}
    first = min((step for step, _ in finite), default=0)
    width = max((max((step for step, _ in finite), default=0) - first + 1) / most, 1.0)
    groups: dict[int, list[tuple[int, float]]] = {}
    for step, value in sorted(finite):
        groups.setdefault(int((step - first) / width), []).append((step, value))
    points = []
    for group in groups.values():
        values = [value for _, value in group]
        own = [line[step] for step, _ in group if isfinite(line.get(step, inf))]
        points.append(Point(group[-1][0], own[-1] if own else None, min(values), max(values)))
    return tuple(points)


def _tested(cell: Cell, runs: Mapping[int, RunRecord]) -> tuple[tuple[float, float], ...]:
    """The step and the score at which the weights of the selected run were tested."""
    run = runs.get(cell.run_id) if cell.run_id is not None else None
    if run is None or run.valid_step is None or run.valid_score is None or not isfinite(run.valid_score):
        return ()
    return ((float(run.valid_step), run.valid_score),)


def _outcomes(cell: Cell) -> str:
    """How the seeds without a score ended."""
    states = Counter(seed.outcome for seed in cell.seeds if seed.score is None)
    return ", ".join(f"{state} {count}/{cell.planned}" for state, count in states.items())

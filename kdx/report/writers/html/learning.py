"""The learning curves of a page, cell by cell."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import inf, isfinite, isnan
from typing import Any

from markupsafe import Markup

from kdx.report.figures.scale import scale
from kdx.report.selection.cells import Cell
from kdx.report.sheets.scores import cell_anchor
from kdx.report.statistics.metric import Metric
from kdx.report.writers.html.charts import learning_curve, overlay
from kdx.report.writers.html.curves import Band, band
from kdx.store.records import CurveRecord, RunRecord, SweepRecord

Curves = Mapping[int, Mapping[str, CurveRecord]]
"""Run id → metric → curve."""

LOSS = "train/loss"

_MOST_CHECKED, _BEST_CHECKED = 8, 4
"""Most cells whose curves the page lays over each other at first, and how many of them are the best where there are
more; baselines come next."""
_MOST_STEPS, _FEWEST_STEPS, _ALL_STEPS = 120, 30, 12_000
"""Steps of one curve at most and at least, and of all curves of the page: more cells make coarser curves."""


def curves_wanted(sweep: SweepRecord) -> set[str]:
    """The metrics whose curves the page of a sweep shows."""
    return {LOSS, *(cell.spec.selection_metric for cell in sweep.cells)}


def figures_of_curves(
    cells: Mapping[str, tuple[Cell, str]],
    runs: Mapping[int, RunRecord],
    curves: Curves,
    baselines: Collection[str] = (),
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
    for metric, its in groups.items():
        figures: dict[str, list[Any]] = {cell.id: [] for cell, _ in its}
        bands = {
            name: {cell.id: found for cell, _ in its if (found := _band(cell, name, curves, most))}
            for name in (metric.name, LOSS)
        }
        drawn = [one for those in bands.values() for one in those.values()]
        steps = scale([step for one in drawn for step in (*one.steps, *(at for at, _ in one.line))])
        overlays = []
        for number, (name, those) in enumerate(bands.items()):
            title = str(metric) if name == metric.name else name
            span = scale([value for one in those.values() for value in (*one.low, *one.high)])
            for cell, _ in its:
                if cell.id in those and span and steps:
                    best = _best(cell, runs) if name == metric.name else None
                    figures[cell.id].append(_numbered(learning_curve(those[cell.id], title, span, steps, best), number))
            if len(those) > 1 and span and steps:
                overlays.append(_numbered(overlay(title, span, steps), number))
        checked = _checked([cell for cell, _ in its if figures[cell.id]], baselines)
        shown = [
            {
                "href": f"#{cell_anchor(cell)}",
                "caption": title,
                "outcomes": _outcomes(cell),
                "svgs": figures[cell.id],
                "checked": cell.id in checked,
            }
            for cell, title in its
            if figures[cell.id]
        ]
        sections += [{"title": metric, "figures": shown, "overlays": overlays}] if shown else []
    return sections


def _checked(cells: Sequence[Cell], baselines: Collection[str]) -> set[str]:
    """The cells whose curves lie over each other until the reader chooses others."""

    def gain(cell: Cell) -> float:
        mean = cell.summary.mean if cell.summary else None
        return -inf if mean is None or isnan(mean) else cell.metric.gain(mean)

    ranked = sorted(cells, key=gain, reverse=True)
    rest = sorted(ranked[_BEST_CHECKED:], key=lambda cell: cell.id not in baselines)
    return {cell.id for cell in [*ranked[:_BEST_CHECKED], *rest][:_MOST_CHECKED]}


def _numbered(svg: str, number: int) -> Markup:
    """Adds the number by which the page's script finds the chart among the metrics of its cell."""
    return Markup(svg.replace("<svg", f'<svg data-metric="{number}"', 1))


def _band(cell: Cell, name: str, curves: Curves, most: int) -> Band | None:
    shown = [one.run_id for one in cell.seeds if one.invalidated is None]
    its = [curves[run][name] for run in shown if name in curves.get(run, ())]
    selected = curves.get(cell.run_id, {}).get(name) if cell.run_id is not None else None
    return band(its, selected, most)


def _best(cell: Cell, runs: Mapping[int, RunRecord]) -> tuple[float, float] | None:
    run = runs.get(cell.run_id) if cell.run_id is not None else None
    if run is None or run.valid_step is None or run.valid_score is None or not isfinite(run.valid_score):
        return None
    return float(run.valid_step), run.valid_score


def _outcomes(cell: Cell) -> str:
    """How the seeds without a score ended."""
    states = Counter(seed.outcome for seed in cell.seeds if seed.score is None)
    return ", ".join(f"{state} {count}/{cell.planned}" for state, count in states.items())

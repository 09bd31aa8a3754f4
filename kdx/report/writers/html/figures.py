"""The figures of a table: its cells as a picture, their differences, and what they cost."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, isfinite
from typing import Any

from markupsafe import Markup

from kdx.grid.table_layout import Address
from kdx.metrics.decimals import rounded
from kdx.report.figures.charts import CURVE, SCATTER, Mark, dots, forest, plotted, scatter
from kdx.report.figures.plot import Plot, Point, Series, scale
from kdx.report.figures.series import over_length, over_parameters
from kdx.report.sheets.scores import cell_anchor, run_anchor
from kdx.report.statistics.metric import Metric, ratio
from kdx.report.table import comparisons
from kdx.report.table.audit import PARAMETERS
from kdx.report.tables import Table
from kdx.report.wording import difference, in_levels, interval, setting
from kdx.store.records import SweepRecord

_MOST_GROUPS = 24
"""Largest number of groups that a scatter distinguishes by colour and shape."""
_MOST_ROWS = 100
"""Cells of a table as a picture."""
_MOST_POINTS = 5_000
"""Seeds of a scatter, and selected ones; more would cover each other, and take gigabytes to draw."""


def figures(table: Table, sweep: SweepRecord) -> Iterator[dict[str, Any]]:
    """The figures of a table as the template takes them: a caption, and charts; the first is the table as a picture."""
    seeds = sum(len(cell.seeds) for cell in table.layout.cells)
    for caption, svgs in (
        (
            _about_dots(table),
            [*_dots(table)],
        ),
        (
            "The mean score against the length that was read; the band is from the lowest to the highest of all seeds.",
            [plotted(plot, SCATTER) for plot in over_length(table)],
        ),
        (_about_differences(table), [*_forests(table)]),
        (
            "The mean score against the number of parameters, and against the time of training, one point per cell. "
            "Times depend on the machine, and on what else ran there.",
            [*_costs(table, sweep)],
        ),
        (
            "The score on validation and on test, one point per seed; large and filled: the one selected in its cell."
            + (f" Of {seeds:,} seeds, some stand for all." if seeds > _MOST_POINTS else ""),
            [*_scatters(table)],
        ),
        (
            "The score of each trial against each parameter, over its range; filled: the best, whose settings the cell "
            "has. Axes of scores are the same for all cells of a metric.",
            [*_trials(table)],
        ),
        (
            "The expected best score of as many trials, drawn with replacement from those that completed (Dodge et al. "
            "2019); nine in ten such searches lie in the band. It is too pessimistic, the more so the closer to all.",
            [*_expected_best(table)],
        ),
    ):
        if svgs:
            yield {"caption": caption, "svgs": [*map(Markup, svgs)]}


def _by_panel(table: Table) -> list[tuple[str, Metric, dict[Address, float]]]:
    """The mean of each place that has one, by task and metric; where there are many, the best of them."""
    panels: dict[tuple[str, Metric], dict[Address, float]] = {}
    for at, cell in table.layout.places.items():
        if cell.summary and isfinite(cell.summary.mean):
            panels.setdefault((table.layout.spec(at).task, cell.metric), {})[at] = cell.summary.mean
    shown = []
    for (task, metric), means in panels.items():
        best = set(sorted(means, key=lambda at: -metric.gain(means[at]))[:_MOST_ROWS])
        shown.append((task, metric, {at: mean for at, mean in means.items() if at in best}))
    return shown


def _dots(table: Table) -> Iterator[str]:
    """Each cell's seeds, mean and interval, a panel for each task and metric."""
    panels = _by_panel(table)
    for task, metric, means in panels:
        cells, runs = [], []
        for (at, mean), name in zip(means.items(), _varying(table, [*means]), strict=True):
            cell = table.layout.places[at]
            low, high = cell.interval or (mean, mean)
            about = f", 95% interval {interval((low, high), metric.name)}" if cell.interval else ""
            label = f"{name}: mean {rounded(mean, metric.name)}{about}"
            is_best = table.marks.get(at) is comparisons.Mark.BEST
            cells.append(Mark(label, f"#{cell_anchor(cell)}", is_best, mean, low=low, high=high, group=name))
            for seed in cell.seeds:
                if seed.score is not None and isfinite(seed.score):
                    label = f"{name}, seed {seed.seed}: {rounded(seed.score, metric.name)}"
                    href = f"#{run_anchor(table.layout, cell, seed.run_id)}"
                    runs.append(Mark(label, href, seed.run_id == cell.run_id, seed.score, group=name))
        several = len({other for _, other, _ in panels}) < len(panels)
        yield dots(cells, runs, f"{task}, {metric}" if several else str(metric))


def _about_dots(table: Table) -> str:
    texts = " and test text" if any(cell.documents for cell in table.layout.cells) else ""
    compared = "; cells are compared by the differences below" if table.differences else ""
    caption = (
        "The score of each seed (full circle: the selected one), the mean (diamond; full: the best of its column) and "
        f"its 95% interval over seeds{texts}{compared}."
    )
    shown = sum(len(means) for *_, means in _by_panel(table))
    left_out = sum(bool(cell.summary and isfinite(cell.summary.mean)) for cell in table.layout.cells) > shown
    return f"{caption} The {_MOST_ROWS} best of each task." if left_out else caption


def _costs(table: Table, sweep: SweepRecord) -> Iterator[str]:
    """The mean score of each cell against its parameters and its time of training, where cells differ in them."""
    seconds = {run.id: run.seconds for run in sweep.runs if run.seconds is not None}
    parameters = {run: metrics[PARAMETERS] for run, metrics in sweep.metrics.items() if PARAMETERS in metrics}
    groups = _groups(table)
    for _, metric, means in _by_panel(table):
        for title, known in (("parameters", parameters), ("seconds of a run", seconds)):
            marks = []
            for at, mean in means.items():
                cell = table.layout.places[at]
                costs = [known[seed.run_id] for seed in cell.seeds if seed.score is not None and seed.run_id in known]
                if costs:
                    cost = sum(costs) / len(costs)
                    label = f"{table.layout.place(at)}: {rounded(mean, metric.name)} with {cost:,.0f} {title}"
                    marks.append(Mark(label, f"#{cell_anchor(cell)}", True, cost, mean, group=groups[at[0]]))
            if len({mark.x for mark in marks}) > 1:
                yield scatter(marks, title, str(metric))


def _scatters(table: Table) -> Iterator[str]:
    groups = _groups(table)
    places = table.layout.places.items()
    for test, validation in dict.fromkeys((cell.metric, cell.selected_by) for cell in table.layout.cells):
        marks = []
        for at, cell in places:
            if (cell.metric, cell.selected_by) != (test, validation):
                continue
            for seed in cell.seeds:
                x, y = seed.validation, seed.score
                if x is not None and isfinite(x) and y is not None and isfinite(y):
                    is_selected = seed.run_id == cell.run_id
                    label = (
                        f"{table.layout.place(at)}, seed {seed.seed}: {rounded(x, validation.name)} on validation, "
                        f"{rounded(y, test.name)} on test{', selected' if is_selected else ''}"
                    )
                    href = f"#{run_anchor(table.layout, cell, seed.run_id)}"
                    marks.append(Mark(label, href, is_selected, x, y, group=groups[at[0]]))
        # A table of validation scores has no test scores to plot against them.
        if marks and test != validation:
            shown: list[Mark] = []
            for filled in (False, True):
                alike = [mark for mark in marks if mark.filled is filled]
                # At equal distances where there are too many.
                shown += alike[:: max(1, ceil(len(alike) / _MOST_POINTS))]
            yield scatter(shown, str(validation), str(replace(test, name=test.recorded)))


def _trials(table: Table) -> Iterator[str]:
    """The scores of the trials of each searched cell against each parameter."""
    plots = [
        (searched.metric, replace(plot, title=table.layout.place(at)))
        for at, searched in table.searches.items()
        for plot in over_parameters(searched)
    ]
    for metric, plot in plots:
        scores = [point.low for other, drawn in plots if other == metric for point in drawn.series[0].points]
        yield plotted(replace(plot, y_span=scale(scores)), CURVE)


def _expected_best(table: Table) -> Iterator[str]:
    by_metric: dict[Metric, list[Series]] = {}
    for at, searched in table.searches.items():
        points = tuple(Point(float(best.draws), best.expected, best.low, best.high) for best in searched.expected_best)
        if points:
            by_metric.setdefault(searched.metric, []).append(Series(table.layout.place(at), points))
    for metric, series in by_metric.items():
        yield plotted(Plot("", "trials", str(metric), tuple(series), logarithmic=True), SCATTER)


def _groups(table: Table) -> list[str]:
    """The group of each row's points: the names of the row, or only the outermost ones where there are too many."""
    for levels in range(len(table.layout.row_factors), 0, -1):
        factors = table.layout.row_factors[:levels]
        groups = [in_levels(dict(zip(factors, row[:levels], strict=True))) for row in table.layout.rows]
        if len(set(groups)) <= _MOST_GROUPS:
            return groups
    return [""] * len(table.layout.rows)


def _varying(table: Table, places: Sequence[Address]) -> list[str]:
    """The name of each place, without the words that all of them share."""
    headers = [table.layout.header(at) for at in places]
    varying = [factor for factor in headers[0] if len({header[factor] for header in headers}) > 1] if headers else []
    return [in_levels({factor: header[factor] for factor in varying or header}) for header in headers]


def _forests(table: Table) -> Iterator[str]:
    for metric in dict.fromkeys(each.metric for each in table.differences):
        compared = [each for each in table.differences if each.metric == metric and each.estimate]
        marks = []
        for each, name in zip(compared, _varying(table, [each.at for each in compared]), strict=True):
            if each.estimate and isfinite(each.estimate.value):
                bounds = each.estimate.value, *each.estimate.interval()
                x, low, high = map(ratio, bounds) if metric.in_nats else bounds
                label = f"{name}: {f'{x:.3f} times' if metric.in_nats else difference(x, metric)}"
                href = f"#{cell_anchor(table.layout.places[each.at])}"
                marks.append(Mark(label, href, each.significant, x, low=low, high=high, group=name))
        if marks:
            times, by = f"{metric.unit}, times that of the other cell", f"better by ({metric.scale_in_words})"
            yield from filter(None, [forest(marks, times if metric.in_nats else by, zero=float(metric.in_nats))])


def _about_differences(table: Table) -> str:
    against = setting(table.baseline) or "the best of the column"
    filled, family = ("different from", "table") if table.baseline else ("worse than", "column")
    return (
        f"Difference of each cell's mean from {against}, or their ratio, with the 95% interval of this one comparison; "
        f"right of the line is better. Filled: {filled} it, corrected over the {family}."
    )

"""The figures beside a table: a scatter of validation and test scores, and the differences between cells."""

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from typing import Any

from markupsafe import Markup

from kdx.grid.table_layout import Address
from kdx.report.figures.scale import scale
from kdx.report.figures.series import AXIS, OverParameter, Series, over_length, over_parameters
from kdx.report.selection.cells import Seed
from kdx.report.sheets.scores import cell_anchor, run_anchor
from kdx.report.statistics.metric import Metric, ratio
from kdx.report.table.table import Table
from kdx.report.wording import LEVELS, place, rounded, setting, word_of
from kdx.report.writers.html.charts import MANY, Point, forest, over_parameter, over_setting, scatter

_MOST_GROUPS = 24
"""Largest number of groups that a scatter distinguishes by colour and shape."""


def scatters(table: Table) -> Iterator[dict[str, Any]]:
    svgs = []
    groups = _groups(table)
    for test, validation in dict.fromkeys((cell.metric, cell.selected_by) for cell in table.layout.cells):
        its = [
            cell for cell in table.layout.places.items() if (cell[1].metric, cell[1].selected_by) == (test, validation)
        ]
        seeds = [
            (at, cell, one)
            for at, cell in its
            for one in cell.seeds
            if one.validation is not None and one.score is not None
            if isfinite(one.validation) and isfinite(one.score)
        ]
        points = [
            Point(
                # Where there are many points, only the selected ones are links with a label.
                _label(table, at, one, test, validation, selected=one.run_id == cell.run_id)
                if len(seeds) <= MANY or one.run_id == cell.run_id
                else "",
                f"#{run_anchor(table.layout, cell, one.run_id)}",
                one.run_id == cell.run_id,
                one.validation or 0.0,
                one.score or 0.0,
                group=groups[at[0]],
            )
            for at, cell, one in seeds
        ]
        # A table of validation scores has no test scores to plot against them.
        if points and test != validation:
            svgs.append(Markup(scatter(points, str(validation), str(replace(test, name=test.recorded)))))
    if svgs:
        text = "The score on validation and on test, a point a seed; large and filled: the one selected in its cell."
        yield {"caption": text, "svgs": svgs, "narrow": True}


def lengths(table: Table) -> Iterator[dict[str, Any]]:
    """Scores against the length of the evaluation, where the table has it and cells have several."""
    svgs = [Markup(over_setting(series, AXIS, str(metric))) for metric, series in over_length(table).items()]
    if svgs:
        caption = "The score against the length that was read; the band is from the lowest to the highest of all seeds."
        yield {"caption": caption, "svgs": svgs, "narrow": True}


def searches(table: Table) -> Iterator[dict[str, Any]]:
    """Of each searched cell the scores of its trials against each parameter; and the expected best of fewer trials."""
    by_metric: dict[Metric, list[tuple[str, OverParameter]]] = {}
    draws: dict[Metric, list[Series]] = {}
    for at, one in table.searches.items():
        name = place(table.layout, at)
        by_metric.setdefault(one.metric, []).extend((name, plot) for plot in over_parameters(one))
        points = tuple((float(each.draws), each.expected, each.low, each.high) for each in one.expected_best)
        if points:
            draws.setdefault(one.metric, []).append(Series(name, points))
    for metric, plots in by_metric.items():
        span = scale([point.score for _, plot in plots for point in plot.points])
        if span:
            svgs = [Markup(over_parameter(plot, name, span, str(metric))) for name, plot in plots]
            text = (
                f"{metric} of each trial against each parameter, over its range; filled: the best, whose settings "
                "the cell has. Axes of scores are the same for all."
            )
            yield {"caption": text, "svgs": svgs, "narrow": True}
    if draws:
        text = (
            "The expected best score of as many trials, drawn with replacement from those that completed (Dodge et al. "
            "2019); nine in ten such searches lie in the band. It is too pessimistic, the more the nearer to all."
        )
        svgs = [Markup(over_setting(series, "trials", str(metric))) for metric, series in draws.items()]
        yield {"caption": text, "svgs": svgs, "narrow": True}


def _label(table: Table, at: Address, one: Seed, test: Metric, validation: Metric, *, selected: bool) -> str:
    assert one.validation is not None and one.score is not None
    return (
        f"{place(table.layout, at)}, seed {one.seed}: "
        f"{rounded(one.validation, validation.name)} on validation, "
        f"{rounded(one.score, test.name)} on test{', selected' if selected else ''}"
    )


def _groups(table: Table) -> list[str]:
    """The group of each row's points: the names of the row, or only the outermost ones where there are too many."""
    for levels in range(len(table.layout.row_factors), 0, -1):
        groups = [
            LEVELS.join(
                word_of(factor, word) for factor, word in zip(table.layout.row_factors, row[:levels], strict=False)
            )
            for row in table.layout.rows
        ]
        if len(set(groups)) <= _MOST_GROUPS:
            return groups
    return [""] * len(table.layout.rows)


def forests(table: Table) -> Iterator[dict[str, Any]]:
    svgs = []
    for metric in dict.fromkeys(one.metric for one in table.differences):
        its = [one for one in table.differences if one.metric == metric and one.estimate]
        headers = [table.layout.header(one.at) for one in its]
        # Words that all rows share are left out.
        varying = [factor for factor in headers[0] if len({header[factor] for header in headers}) > 1] if its else []
        points = []
        for one, header in zip(its, headers, strict=True):
            if one.estimate and isfinite(one.estimate.value):
                bounds = one.estimate.value, *one.estimate.interval()
                x, low, high = map(ratio, bounds) if metric.in_nats else bounds
                label = LEVELS.join(word_of(factor, header[factor]) for factor in varying or header)
                href = f"#{cell_anchor(table.layout.places[one.at])}"
                points.append(Point(label, href, one.significant, x, low=low, high=high))
        if points:
            title = f"{metric.unit}, times that of the other cell" if metric.in_nats else f"better by ({metric.unit})"
            svgs.append(Markup(forest(points, title, ratios=metric.in_nats)))
    if svgs:
        against = setting(table.baseline) or "the best of the column"
        filled, of = ("different from", "table") if table.baseline else ("worse than", "column")
        yield {
            "caption": f"Difference of each cell's mean from {against}, or their ratio, with the 95% interval of this "
            f"one comparison; right of the line is better. Filled: {filled} it, corrected over the {of}.",
            "svgs": svgs,
        }

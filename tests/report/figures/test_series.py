"""Scores against a length or a parameter are those of the table and of the search."""

from math import inf, nan
from types import SimpleNamespace
from typing import Any

import trials

from kdx.grid.table_layout import Address
from kdx.report.figures.plot import Point, Series
from kdx.report.figures.series import LENGTH, over_length, over_parameters
from kdx.report.statistics.metric import Metric
from kdx.report.table.layout import Layout
from kdx.report.table.table import Table
from kdx.vocabulary import Direction

PERPLEXITY, LOSS = Metric("perplexity", Direction.MIN), Metric("loss", Direction.MIN)


def cell(value: float | None, *scores: float | None, metric: Metric = PERPLEXITY) -> Any:
    """What is read of a cell."""
    return SimpleNamespace(value=value, metric=metric, seeds=[SimpleNamespace(score=score) for score in scores])


def table(places: dict[Address, Any], factor: str = LENGTH) -> Table:
    """Kernels, whose last is `none`, in the rows and lengths from the longest in the columns."""
    return Table(
        Layout(
            name="t",
            caption="",
            shown=None,  # type: ignore[arg-type]
            row_factors=("kernel",),
            column_factors=(factor,),
            rows=(("rbf",), ("none",)),
            columns=(("256",), ("128",), ("None",)),
            metrics=(PERPLEXITY,) * 3,
            places=places,
            records={},
        )
    )


def test_points_go_from_the_lowest_length_and_have_the_number_of_the_table_within_its_seeds() -> None:
    places = {(0, 0): cell(6.0, 6.0, 6.5, None), (0, 1): cell(7.5, 7.0, 7.5), (1, 1): cell(8.0, 8.0)}
    (plot,) = over_length(table(places))
    assert plot.title == "t: perplexity ↓ against the length"
    assert plot.series == (
        Series("rbf", (Point(128.0, 7.5, 7.0, 7.5), Point(256.0, 6.0, 6.0, 6.5))),
        Series("kernel none", (Point(128.0, 8.0, 8.0, 8.0),)),
    )


def test_without_two_lengths_of_a_group_with_numbers_there_is_no_plot() -> None:
    places = {(0, 0): cell(6.0, 6.0), (0, 1): cell(7.0, 7.0)}
    assert [*over_length(table(places))] and not [*over_length(table(places, factor="evaluation.beam"))]
    assert not [*over_length(table({(0, 0): cell(6.0, 6.0), (1, 1): cell(7.0, 7.0)}))]
    for other in (cell(None, 5.0), cell(inf, 5.0), cell(5.0, 5.0, nan)):
        assert not [*over_length(table(places | {(0, 1): other}))]
    of_loss = {(1, column): cell(2.0, 2.0, metric=LOSS) for column in range(2)}
    assert [[series.name for series in plot.series] for plot in over_length(table(places | of_loss))] == [
        ["rbf"],
        ["kernel none"],
    ]


def test_a_range_keeps_its_ends_and_scale_and_a_list_its_words() -> None:
    rate, dropout = over_parameters(trials.table(trials.search("rbf")).searches[0, 0])
    assert (rate.x, rate.ticks, rate.x_span, rate.logarithmic) == (trials.RATE, (), (1e-4, 1e-2), True)
    assert rate.dots == ((9.5e-3, 20.0),) and len(rate.series[0].points) == 3
    assert (dropout.ticks, dropout.x_span, dropout.logarithmic) == (("0", "0.1", "0.3"), (0.0, 2.0), False)
    assert [point.x for point in dropout.series[0].points] == [0.0, 1.0, 2.0]

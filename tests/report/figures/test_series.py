"""Scores against a length are those of the table, group by group, with the lowest and the highest of the seeds."""

from types import SimpleNamespace
from typing import Any

import trials

from kdx.grid.table_layout import Address
from kdx.report.figures.series import LENGTH, Series, TrialPoint, over_length, over_parameters
from kdx.report.statistics.metric import Metric
from kdx.report.table.layout import Layout
from kdx.report.table.table import Table
from kdx.vocabulary import Direction

PERPLEXITY, LOSS = Metric("perplexity", Direction.MIN), Metric("loss", Direction.MIN)


def cell(value: float | None, *scores: float | None, metric: Metric = PERPLEXITY) -> Any:
    """What is read of a cell."""
    return SimpleNamespace(value=value, metric=metric, seeds=[SimpleNamespace(score=score) for score in scores])


def table(places: dict[Address, Any], rows: tuple[str, ...] = ("rbf", "none"), factor: str = LENGTH) -> Table:
    """Kernels, whose last may be `none`, in the rows and lengths from the longest in the columns."""
    return Table(
        Layout(
            name="t",
            caption="",
            shown=None,  # type: ignore[arg-type]
            row_factors=("kernel",),
            column_factors=(factor,),
            rows=tuple((row,) for row in rows),
            columns=(("256",), ("128",), ("None",)),
            metrics=(PERPLEXITY,) * 3,
            places=places,
            records={},
        )
    )


def test_points_go_from_the_lowest_length_and_have_the_number_of_the_table_within_its_seeds() -> None:
    found = over_length(table({(0, 0): cell(6.0, 6.0, 6.5, None), (0, 1): cell(7.5, 7.0, 7.5), (1, 1): cell(8.0, 8.0)}))
    assert found == {
        PERPLEXITY: [
            Series("rbf", ((128.0, 7.5, 7.0, 7.5), (256.0, 6.0, 6.0, 6.5))),
            Series("kernel none", ((128.0, 8.0, 8.0, 8.0),)),
        ]
    }


def test_without_lengths_or_without_two_of_a_group_there_is_nothing() -> None:
    places = {(0, 0): cell(6.0, 6.0), (0, 1): cell(7.0, 7.0)}
    assert over_length(table(places)) and not over_length(table(places, factor="evaluation.beam"))
    assert not over_length(table({(0, 0): cell(6.0, 6.0), (1, 1): cell(7.0, 7.0)}))


def test_cells_without_a_number_or_without_a_length_have_no_point() -> None:
    places = {(0, 0): cell(6.0, 6.0), (0, 1): cell(7.0, 7.0)}
    for other in (cell(None, 5.0), cell(float("inf"), 5.0), cell(5.0, 5.0, float("nan"))):
        assert not over_length(table(places | {(0, 1): other}))
    (series,) = over_length(table(places | {(0, 2): cell(5.0, 5.0)}))[PERPLEXITY]
    assert [length for length, *_ in series.points] == [128.0, 256.0]


def test_each_metric_has_its_own_series() -> None:
    places = {(row, column): cell(5.0, 5.0) for row in range(2) for column in range(2)}
    places |= {(1, column): cell(2.0, 2.0, metric=LOSS) for column in range(2)}
    found = over_length(table(places))
    assert {metric: [one.group for one in series] for metric, series in found.items()} == {
        PERPLEXITY: ["rbf"],
        LOSS: ["kernel none"],
    }


def test_a_range_keeps_its_ends_and_scale_and_a_list_its_words():
    rate, dropout = over_parameters(trials.table(trials.search("rbf")).searches[0, 0])
    assert (rate.name, rate.words, rate.span, rate.logarithmic) == (trials.RATE, (), (1e-4, 1e-2), True)
    assert rate.points[1] == TrialPoint(1, 9.5e-3, 20.0, True) and not rate.points[0].best
    assert (dropout.words, dropout.span, dropout.logarithmic) == (("0", "0.1", "0.3"), (0.0, 2.0), False)
    assert [one.at for one in dropout.points] == [1.0, 0.0, 2.0]

"""Where cells stand in a table: its places, their headers, and the number of seeds behind all of them."""

from math import nan

import pytest
from sweeps import cell, seeded, sweep

from kdx.grid.plan import TableSpec
from kdx.report.table.layout import Layout, lay_out
from kdx.store.records import SweepRecord


def laid_out(record: SweepRecord, **requests: object) -> Layout:
    (built,) = lay_out(record, [TableSpec.model_validate({"name": "t", **requests})])
    return built


def layout(**scores: list[float]) -> Layout:
    """kernel × norm, in columns; rbf has no cell with `pre`."""
    places = {"rp": ("rbf", "post"), "ep": ("exponential", "post"), "er": ("exponential", "pre")}
    cells = [cell(id, kernel=kernel, norm=norm) for id, (kernel, norm) in places.items()]
    runs = [each for id, values in scores.items() for each in seeded(id, *values)]
    requests = {"rows": ["task", "kernel"], "columns": ["norm"]}
    return laid_out(sweep(cells, runs), **requests)


def test_places_are_read_row_by_row_and_what_is_not_planned_is_no_place() -> None:
    built = layout()
    assert [(at, result.id) for at, result in built.places.items()] == [((0, 0), "rp"), ((1, 0), "ep"), ((1, 1), "er")]
    assert [result.id for result in built.cells] == ["rp", "ep", "er"]
    assert (0, 1) not in built.places


def test_a_place_is_named_by_the_words_of_its_row_and_its_column() -> None:
    assert layout().header((1, 1)) == {"task": "translation", "kernel": "exponential", "norm": "pre"}
    with pytest.raises(IndexError):
        layout().header((2, 0))


@pytest.mark.parametrize(
    ("scores", "n"),
    [
        ({"rp": [1.0, 2.0], "ep": [1.0, 2.0], "er": [3.0, 4.0]}, 2),
        ({"rp": [1.0, 2.0], "ep": [1.0], "er": [3.0, 4.0]}, None),
        # A place without a score has no seeds that could be unequal.
        ({"rp": [1.0, 2.0]}, 2),
        ({"rp": [1.0]}, 1),
        ({}, None),
    ],
)
def test_n_is_the_number_of_seeds_behind_every_score_if_it_is_the_same(
    scores: dict[str, list[float]], n: int | None
) -> None:
    assert layout(**scores).n == n


@pytest.mark.parametrize(
    ("scores", "fewest"),
    [({"rp": [1.0, 2.0], "ep": [1.0, 2.0, 3.0]}, 2), ({"rp": [1.0, nan], "ep": [1.0, 2.0]}, 1), ({"rp": [nan]}, 0)],
)
def test_the_fewest_are_the_finite_scores_of_a_cell_that_has_any(scores: dict[str, list[float]], fewest: int) -> None:
    assert layout(**scores).fewest == fewest

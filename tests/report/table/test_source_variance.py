"""What each source of randomness contributes to the variance of a cell, or why that cannot be told."""

import itertools

import pytest
import sweeps

from kdx.errors import KdxError
from kdx.grid.seed_sources import Source, SourceSeeds
from kdx.report.sheets.variance import variance_by_source
from kdx.report.tables import tables
from kdx.report.writers.json import to_json


def crossed(cell_id, initialisations=3, orders=3, score=lambda i, o: 10.0 + 4 * i + o % 2 + 0.1 * ((i + o) % 3)):
    return [
        sweeps.run(
            cell_id, SourceSeeds(i, o, 0).number, score(i, o), score(i, o), id=1000 * ord(cell_id[0]) + 10 * i + o
        )
        for i, o in itertools.product(range(initialisations), range(orders))
    ]


def table(runs, *kernels, variance=True):
    cells = [sweeps.cell(kernel, kernel=kernel) for kernel in kernels]
    asked = {"name": "t", "rows": ["kernel"], "cell": "mean"}
    return tables(sweeps.sweep(cells, runs, tables=[asked]), variance=variance)[0]


def test_the_variance_of_a_cell_is_divided_among_its_sources():
    one = table(crossed("rbf"), "rbf").variances[0, 0]
    assert [*one.components.sources] == ["initialisation", "order"] and one.fixed == {Source.DROPOUT: 0}
    assert one.components.sources["initialisation"].sd == pytest.approx(4, rel=0.05)
    assert one.components.n == 9 and one.mean == pytest.approx(sum(10 + 4 * i for i in range(3)) / 3 + 1 / 3 + 0.1)


def test_a_listing_and_json_have_it():
    found = table(crossed("rbf"), "rbf")
    listing = variance_by_source(found)
    assert [row[:4] for row in listing.rows] == [
        ("rbf", "initialisation", "bleu", "3"),
        ("rbf", "order", "bleu", "3"),
        ("rbf", "rest", "bleu", "4"),
    ]
    assert "At seed 0 of dropout alone: rbf." in listing.notes
    (plain,) = to_json(found)["variances"]
    assert plain["fixed"] == {"dropout": 0} and [*plain["sources"]] == ["initialisation", "order", "rest"]
    assert sum(one["share"] for one in plain["sources"].values()) == pytest.approx(1)
    assert plain["sources"]["rest"]["low"] <= plain["sources"]["rest"]["variance"] <= plain["sources"]["rest"]["high"]


def test_a_cell_whose_seeds_are_not_crossed_says_so_beside_one_whose_are():
    found = table([*crossed("rbf"), *sweeps.seeded("exponential", 1.0, 2.0)], "rbf", "exponential")
    assert found.variances[1, 0].components is None
    assert any(
        note.startswith("Not estimated of exponential: no two runs share") for note in variance_by_source(found).notes
    )


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        (sweeps.seeded("rbf", 1.0, 2.0, 3.0), "no two runs share a seed"),
        (crossed("rbf", 2), "initialisation has 2 seeds with a score, and its variance needs 3"),
        ([], "sources of variance apart"),
    ],
    ids=["one seed for all", "too few seeds", "no scores"],
)
def test_what_no_cell_tells_is_refused_with_what_to_plan(runs, reason):
    with pytest.raises(KdxError, match=reason) as refusal:
        table(runs, "rbf")
    assert "seeds: {initialisation: 3" in refusal.value.hint


def test_runs_that_share_seeds_have_no_interval_and_no_mark_and_the_note_says_why():
    found = table([*crossed("rbf"), *crossed("exponential")], "rbf", "exponential", variance=False)
    cell = found.layout.places[0, 0]
    assert cell.summary.n == 9 and cell.half_width is None and cell.compared is None
    assert found.marks == {} and all(one.estimate is None for one in found.differences)
    assert any("3 of initialisation × 3 of order, seed 0 of dropout: runs that share" in note for note in found.notes)


def test_runs_that_vary_in_one_source_alone_keep_their_interval_and_the_note_says_which():
    found = table(crossed("rbf", 3, 1), "rbf", variance=False)
    assert found.layout.places[0, 0].half_width > 0
    assert any(
        "seed 0 of order and seed 0 of dropout: the spread is over what varies alone" in note for note in found.notes
    )

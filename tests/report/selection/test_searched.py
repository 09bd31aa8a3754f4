"""What a search found: its winner, the edges of its ranges, and what fewer trials would have found."""

from dataclasses import replace

import pytest
import sweeps
from trial import trial

from kdx.grid.tuning import Choice, DrawnRange, Sampler, Search, Tuning
from kdx.report.selection.searched import Edge, searched, searched_cells, searches_without_winner
from kdx.store.records import SearchRecord, TrialState
from tests.grids import TSALLIS, recorded

RATE = "training.learning_rate"
BLEU = sweeps.metric_of("valid/bleu")
WIDE = DrawnRange(low=1e-4, high=1e-2, log=True)
SETTINGS = '{"task": "translation", "data": {"corpus": "synthetic-translation"}}'


def record(values, space=None, *, sampler=Sampler.RANDOM, states=None, total=None, parameter=RATE):
    """A search with a trial for each (parameter, score)."""
    tuning = Tuning(trials=total or len(values), sampler=sampler)
    search = Search("0" * 32, SETTINGS, {parameter: space or WIDE}, tuning)
    trials = tuple(
        trial(number, {parameter: at}, f"cell{number}", state, None if state is TrialState.FAILED else score)
        for number, ((at, score), state) in enumerate(
            zip(values, states or [TrialState.COMPLETED] * len(values), strict=True)
        )
    )
    return SearchRecord(search.id, 0, {"kernel": "rbf"}, search.plain, trials)


def edge_of(values, space=None, **how):
    return next(iter(searched(record(values, space, **how), BLEU).edges.values()), None)


DROPOUT = DrawnRange(low=0.0, high=0.6)
FAILED_LAST = [TrialState.COMPLETED, TrialState.COMPLETED, TrialState.FAILED]


@pytest.mark.parametrize(
    ("values", "edge", "options"),
    [
        ([(1.1e-4, 1.0), (1e-3, 3.0), (9.5e-3, 2.0)], None, {}),
        # As many times higher; but a decade at most, though the range has two.
        ([(1e-3, 1.0), (9.5e-3, 3.0)], (True, 1e-1), {"space": DrawnRange(low=1e-3, high=1e-2, log=True)}),
        ([(1.01e-4, 3.0), (5e-3, 1.0)], (False, 1e-5), {}),
        # A worse trial beyond the winner makes it no edge, a failed one too; one right beside it shows nothing.
        ([(8e-3, 3.0), (9.9e-3, 1.0)], None, {}),
        ([(1e-3, 1.0), (8e-3, 3.0), (9.9e-3, 0.0)], None, {"states": FAILED_LAST}),
        ([(9.5e-3, 3.0), (9.6e-3, 1.0)], (True, 1e-1), {}),
        # The outermost trial is far from the edge, or no trial was worse.
        ([(1e-3, 1.0), (2e-3, 3.0)], None, {}),
        ([(1e-3, 2.0), (9.9e-3, 2.0)], None, {}),
        # A list has no end to move; a dropout below 0 or of 1.2 is refused.
        ([(0.0, 1.0), (0.1, 3.0)], (True, None), {"space": Choice((0.0, 0.1)), "parameter": "model.dropout"}),
        ([(0.0, 3.0), (0.1, 1.0)], None, {"space": Choice((0.0, 0.1)), "parameter": "model.dropout"}),
        ([(0.1, 1.0), (0.6, 3.0)], (True, 0.9), {"space": DROPOUT, "parameter": "model.dropout"}),
        ([(0.01, 3.0), (0.6, 1.0)], None, {"space": DROPOUT, "parameter": "model.dropout"}),
        ([("adam", 1.0), ("sgd", 3.0)], None, {"space": Choice(("adam", "sgd")), "parameter": "training.optimiser"}),
    ],
)
def test_an_optimum_at_an_edge_is_to_be_looked_for_beyond_it_as_far_as_a_cell_allows(values, edge, options):
    result = edge_of(values, **options)
    assert (result and (result.upper, result.beyond)) == (edge and (edge[0], edge[1] and pytest.approx(edge[1])))


def test_an_option_of_a_custom_component_has_edges_within_its_recorded_bounds(components):
    """Of two versions, each search has the bounds of its own, whichever was read last."""
    word = "mine.py:Tsallis"
    versions = {limit: recorded("kernel", word, TSALLIS % f"below={limit}") for limit in (1, 9)}

    def edge(limit: int, component: str) -> Edge | None:
        result = record([(0.1, 1.0), (0.8, 3.0)], DrawnRange(low=0.0, high=0.8), parameter="power")
        settings = {**result.search["settings"], "kernel": word}
        search = {**result.search, "settings": settings, "components": [["kernel", word, component]]}
        return searched(result._replace(search=search), BLEU).edges.get("power")

    assert edge(9, versions[9]).beyond == pytest.approx(1.6)
    assert edge(1, versions[1]) is None, "1 and more is not allowed, and 0.8 + 0.2 is 1"
    assert edge(1, "0" * 64) is None, "nothing is known of a source that the database lacks"


def test_the_expected_best_needs_independent_draws_that_completed():
    values = [(1e-3, 1.0), (2e-3, 2.0), (3e-3, 3.0)]
    assert [each.draws for each in searched(record(values), BLEU).expected_best] == [1, 2, 3]
    tpe = searched(record(values, sampler=Sampler.TPE), BLEU)
    assert tpe.expected_best == () and "tpe sampler are no independent draws" in tpe.without_expected_best
    states = [TrialState.COMPLETED, TrialState.COMPLETED, TrialState.PRUNED]
    pruned = searched(record(values, states=states), BLEU)
    assert pruned.expected_best == () and pruned.without_expected_best.startswith("1 pruned trial lack")


def test_the_best_of_a_loss_is_the_lowest():
    search = searched(record([(1e-3, 1.0), (2e-3, 2.0)]), sweeps.metric_of("valid/loss"))
    assert search.winner.number == 0 and search.expected_best[1].expected == pytest.approx(0.75 * 1.0 + 0.25 * 2.0)


def test_a_winner_is_that_of_a_cell_only_once_the_search_is_done_and_its_cell_is_planned():
    done = record([(1e-3, 1.0), (2e-3, 3.0)])
    sweep = sweeps.sweep([sweeps.cell("cell1")], [])
    assert [*searched_cells(replace(sweep, searches=(done,)))] == ["cell1"]
    short = record([(1e-3, 1.0), (2e-3, 3.0)], total=5)
    assert searched_cells(replace(sweep, searches=(short,))) == {}
    assert [ended for _, ended in searches_without_winner(replace(sweep, searches=(short,)))] == [2]

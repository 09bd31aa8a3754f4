"""Draws are a pure function of the search and of earlier results; parameters come back as a cell has them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.grid.tuning import Choice, DrawnRange, Sampler, Search, Tuning
from kdx.store.records import TrialState
from kdx.tune.known_trial import KnownTrial
from kdx.tune.sampling import distributions, draw, external, frozen, internal, study_of
from kdx.vocabulary import Direction

SPACE = {
    "x": DrawnRange(low=0.001, high=1.0, log=True),
    "n": DrawnRange(low=1, high=64),
    "word": Choice(("a", ["b"], {"c": 1})),
}
WORDS = {"x": Choice((1, 2, 3)), "word": Choice(("a", ["b"], {"c": 1}))}


def search(sampler: Sampler, trials: int = 12, space=None, seed: int = 0) -> Search:
    space = space or (WORDS if sampler is Sampler.GRID else SPACE)
    return Search("0" * 32, "{}", space, Tuning(trials=trials, sampler=sampler, seed=seed))


def score(one: KnownTrial) -> float:
    return (one.parameters["x"] - 0.1) ** 2


def searched(of: Search, known=(), through_json: bool = False) -> list[KnownTrial]:
    """All trials, round by round."""
    known = list(known)
    while drawn := draw(of, Direction.MIN, known):
        for one in drawn:
            attributes = json.loads(json.dumps(one.attributes)) if through_json else one.attributes
            parameters = json.loads(json.dumps(one.parameters)) if through_json else one.parameters
            known.append(KnownTrial(one.number, parameters, attributes, TrialState.COMPLETED, score(one)))
    return known


@pytest.mark.slow
@pytest.mark.parametrize("sampler", Sampler)
def test_a_search_that_is_broken_off_goes_on_with_the_same_trials(sampler):
    of = search(sampler, 9 if sampler is Sampler.GRID else 12)
    whole = searched(of)
    assert len(whole) == of.tuning.trials and searched(of, through_json=True) == whole
    for rounds in range(1, 3):
        done = [one for one in whole if of.tuning.round_of(one.number) < rounds]
        assert searched(of, done) == whole


@pytest.mark.parametrize("sampler", Sampler)
def test_a_longer_search_begins_with_the_trials_of_a_shorter_one(sampler):
    assert searched(search(sampler, 9))[:6] == searched(search(sampler, 6))


@pytest.mark.parametrize("sampler", [one for one in Sampler if one is not Sampler.GRID])
def test_trials_differ_and_so_do_seeds(sampler):
    drawn = [json.dumps(one.parameters) for one in searched(search(sampler))]
    assert len(set(drawn)) == len(drawn)
    assert drawn != [json.dumps(one.parameters) for one in searched(search(sampler, seed=1))]


def test_a_grid_comes_to_every_combination_once():
    drawn = [json.dumps(one.parameters) for one in searched(search(Sampler.GRID, 9))]
    assert len(set(drawn)) == 9


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-6, 1.0), st.floats(1.5, 100.0), st.booleans(), st.integers(0, 2**31))
def test_draws_lie_in_their_ranges(low, times, log, seed):
    space = {"x": DrawnRange(low=low, high=low * times, log=log), "n": DrawnRange(low=3, high=40, step=3)}
    for one in draw(search(Sampler.RANDOM, 6, space, seed), Direction.MAX, []):
        assert low <= one.parameters["x"] <= low * times
        assert one.parameters["n"] in range(3, 41, 3) and type(one.parameters["n"]) is int


MIXED = {
    "b": Choice(([1], {"c": 2}, None)),
    "a": DrawnRange(low=0.1, high=1.0, log=True),
    "n": DrawnRange(low=2, high=8, step=2),
}


@pytest.mark.parametrize("value", [[1], {"c": 2}, None])
def test_a_choice_may_be_any_value(value):
    parameters = {"b": value, "a": 0.5, "n": 4}
    assert external(MIXED, internal(MIXED, parameters)) == parameters


def test_the_order_of_a_grid_does_not_matter():
    assert list(distributions(MIXED)) == ["a", "b", "n"]


def test_a_study_has_the_results_of_its_trials():
    parameters = {"b": None, "a": 0.5, "n": 4}
    known = [
        KnownTrial(0, parameters, {}, TrialState.COMPLETED, 2.0, {10: 3.0}),
        KnownTrial(1, parameters, {}, TrialState.PRUNED, 1.0),
        KnownTrial(2, parameters, {}, TrialState.FAILED),
        KnownTrial(3, parameters),
    ]
    study = study_of("s", Direction.MIN, MIXED, known)
    assert study.best_trial.number == 0 and study.best_trial.intermediate_values == {10: 3.0}
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED", "FAIL", "RUNNING"]


def test_for_people_a_value_stands_as_they_wrote_it():
    shown = frozen(KnownTrial(0, {"b": {"c": 2}, "a": 0.5, "n": 4}, {}, TrialState.FAILED), MIXED)
    assert shown.params["b"] == '{"c": 2}'

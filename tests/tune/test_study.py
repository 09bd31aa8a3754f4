"""Studies in memory: parameters come back as a cell has them."""

import pytest

from kdx.grid.tuning import Choice, DrawnRange
from kdx.store.records import TrialState
from kdx.tune.known_trial import KnownTrial
from kdx.tune.sampling import distributions, external, frozen, internal, study_of
from kdx.vocabulary import Direction

SPACE = {
    "b": Choice(([1], {"c": 2}, None)),
    "a": DrawnRange(low=0.1, high=1.0, log=True),
    "n": DrawnRange(low=2, high=8, step=2),
}


@pytest.mark.parametrize("value", [[1], {"c": 2}, None])
def test_a_choice_may_be_any_value(value):
    parameters = {"b": value, "a": 0.5, "n": 4}
    assert external(SPACE, internal(SPACE, parameters)) == parameters


def test_the_order_of_a_grid_does_not_matter():
    assert list(distributions(SPACE)) == ["a", "b", "n"]


def test_a_study_has_the_results_of_its_trials():
    parameters = {"b": None, "a": 0.5, "n": 4}
    known = [
        KnownTrial(0, parameters, {}, TrialState.COMPLETED, 2.0, {10: 3.0}),
        KnownTrial(1, parameters, {}, TrialState.PRUNED, 1.0),
        KnownTrial(2, parameters, {}, TrialState.FAILED),
        KnownTrial(3, parameters),
    ]
    study = study_of("s", Direction.MIN, SPACE, known)
    assert study.best_trial.number == 0 and study.best_trial.intermediate_values == {10: 3.0}
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED", "FAIL", "RUNNING"]


def test_for_people_a_value_stands_as_they_wrote_it():
    shown = frozen(KnownTrial(0, {"b": {"c": 2}, "a": 0.5, "n": 4}, {}, TrialState.FAILED), SPACE)
    assert shown.params["b"] == '{"c": 2}'

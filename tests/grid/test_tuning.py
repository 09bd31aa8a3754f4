"""What a grid tunes, as values that travel as JSON."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kdx.grid.tuning import Choice, DrawnRange, Pruner, Sampler, Search, Tuning, distribution_of

NUMBERS = st.one_of(st.integers(-1000, 1000), st.floats(-1e6, 1e6))
RANGES = st.one_of(
    st.builds(DrawnRange, low=st.floats(1e-9, 1), high=st.floats(2, 1e6), log=st.booleans()),
    st.builds(DrawnRange, low=st.integers(-9, 0), high=st.integers(9, 99), step=st.floats(0.1, 9)),
)
CHOICES = st.lists(st.one_of(NUMBERS, st.text(), st.lists(st.text())), min_size=2).map(lambda many: Choice(tuple(many)))
TUNINGS = st.builds(
    Tuning,
    trials=st.integers(1, 100),
    sampler=st.sampled_from(Sampler),
    pruner=st.sampled_from(Pruner),
    seeds=st.lists(st.integers(0, 9), min_size=3, unique=True),
    seed=st.integers(0, 9),
    round=st.integers(1, 9),
)


@given(st.dictionaries(st.text(), RANGES | CHOICES), TUNINGS)
def test_a_search_is_the_same_after_it_travelled_as_json(space, tuning):
    search = Search("0" * 32, json.dumps({"task": "translation"}), space, tuning)
    again = Search.of(json.loads(json.dumps(search.plain)))
    assert again == search and again.id == search.id
    assert all(distribution_of(json.loads(json.dumps(one.plain))) == one for one in space.values())


def test_a_round_matters_only_where_trials_depend_on_each_other():
    alone, learning = Tuning(trials=9, sampler=Sampler.RANDOM), Tuning(trials=9, sampler=Sampler.TPE)
    assert [alone.round_of(number) for number in (0, 8)] == [0, 0]
    assert [learning.round_of(number) for number in (0, 3, 4, 8)] == [0, 0, 1, 2]
    assert Tuning(trials=9, sampler=Sampler.RANDOM, pruner=Pruner.MEDIAN).round_of(4) == 1


def test_a_range_of_whole_numbers_is_whole():
    assert DrawnRange(low=1, high=5).whole
    assert not DrawnRange(low=1, high=5.0).whole and not DrawnRange(low=1, high=5, step=0.5).whole

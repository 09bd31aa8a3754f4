"""What a grid tunes, as values that travel as JSON."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kdx.grid.tuning import Choice, Pruner, Range, Sampler, Search, Tuning, distribution_of

NUMBERS = st.one_of(st.integers(-1000, 1000), st.floats(-1e6, 1e6))
RANGES = st.tuples(NUMBERS, NUMBERS, st.booleans(), st.none() | st.floats(0.1, 9)).map(lambda parts: Range(*parts))
CHOICES = st.lists(st.one_of(NUMBERS, st.text(), st.lists(st.text())), min_size=2).map(lambda many: Choice(tuple(many)))
TUNINGS = st.builds(
    Tuning,
    st.integers(1, 100),
    st.sampled_from(Sampler),
    st.sampled_from(Pruner),
    st.lists(st.integers(0, 9), min_size=1).map(tuple),
    st.integers(0, 9),
    st.integers(1, 9),
)


@given(st.dictionaries(st.text(), RANGES | CHOICES), TUNINGS)
def test_a_search_is_the_same_after_it_travelled_as_json(space, tuning):
    search = Search("0" * 32, json.dumps({"task": "translation"}), space, tuning)
    again = Search.of(json.loads(json.dumps(search.plain)))
    assert again == search and again.id == search.id
    assert all(distribution_of(json.loads(json.dumps(one.plain))) == one for one in space.values())


def test_a_round_matters_only_where_trials_depend_on_each_other():
    alone, learning = Tuning(9, Sampler.RANDOM), Tuning(9, Sampler.TPE)
    assert [alone.round_of(number) for number in (0, 8)] == [0, 0]
    assert [learning.round_of(number) for number in (0, 3, 4, 8)] == [0, 0, 1, 2]
    assert Tuning(9, Sampler.RANDOM, Pruner.MEDIAN).round_of(4) == 1


def test_a_range_of_whole_numbers_is_whole():
    assert Range(1, 5).whole and not Range(1, 5.0).whole and not Range(1, 5, step=0.5).whole

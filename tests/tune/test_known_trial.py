"""What a worker gets of other trials travels as text."""

from hypothesis import given
from hypothesis import strategies as st

from kdx.grid.tuning import Pruner
from kdx.store.records import TrialState
from kdx.tune.known_trial import KnownTrial, Rivals
from kdx.vocabulary import Direction

CURVES = st.dictionaries(st.integers(0, 10**6), st.floats(allow_nan=False))
TRIALS = st.builds(
    KnownTrial,
    st.integers(0, 99),
    st.just({}),
    st.just({}),
    st.sampled_from(TrialState),
    st.none() | st.floats(0, 9),
    CURVES,
)


@given(st.lists(TRIALS), st.sampled_from(Pruner), st.sampled_from(Direction))
def test_rivals_are_the_same_after_their_way_to_a_worker(trials, pruner, direction):
    rivals = Rivals(pruner, direction, "0" * 32, 7, 5, tuple(trials))
    assert Rivals.of(rivals.text()) == rivals

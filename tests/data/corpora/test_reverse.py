from hypothesis import given
from hypothesis import strategies as st
from sequences import SEED, at_end, read

from kdx.data.corpora.copy import MARK
from kdx.data.corpora.reverse import Reverse


@given(SEED, st.integers(1, 30), st.integers(2, 30))
def test_the_answer_is_what_was_given_from_its_end(seed, length, symbols):
    found = read(Reverse(), seed, length=length, symbols=symbols)
    given, answer = at_end(found, MARK)
    assert answer == list(reversed(given)) and 1 <= len(given) <= length
    assert set(found.slices["length"].values()) == {len(given)}

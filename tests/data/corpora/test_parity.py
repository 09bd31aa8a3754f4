from hypothesis import given
from hypothesis import strategies as st
from sequences import SEED, at_end, read

from kdx.data.corpora.parity import MARK, ZERO, Parity


@given(SEED, st.integers(4, 40))
def test_the_answer_is_whether_ones_are_odd_in_number(seed, length):
    found = read(Parity(), seed, length=length)
    bits, answer = at_end(found, MARK)
    odd = False
    for bit in bits:
        assert bit in (ZERO, ZERO + 1)
        odd ^= bit == ZERO + 1
    assert answer == [ZERO + odd] and 1 <= len(bits) <= length
    assert set(found.slices["length"].values()) == {len(bits)}

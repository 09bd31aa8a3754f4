from hypothesis import given
from hypothesis import strategies as st
from sequences import SEED, at_end, read

from kdx.data.corpora.addition import EQUALS, PLUS, ZERO, Addition


def number(tokens: list[int]) -> int:
    return int("".join(str(token - ZERO) for token in tokens))


@given(SEED, st.integers(1, 12), st.sampled_from(["reversed", "plain"]))
def test_the_answer_is_the_sum(seed, digits, order):
    found = read(Addition(), seed, digits=digits, order=order)
    prompt, answer = at_end(found, EQUALS)
    plus = prompt.index(PLUS)
    one, other = prompt[:plus], prompt[plus + 1 :]
    assert len(one) == len(other) == len(answer) - 1 <= digits
    assert number(answer if order == "plain" else answer[::-1]) == number(one) + number(other)
    assert set(found.slices["digits"].values()) == {len(one)}
    # A carry goes into each place at which the sum of all digits up to it does not fit.
    carries = sum(number(one[-upto:]) + number(other[-upto:]) >= 10**upto for upto in range(1, len(one) + 1))
    assert set(found.slices["carries"].values()) == {carries}

"""Induction: an answer is what came after the same token before."""

from hypothesis import given
from hypothesis import strategies as st
from sequences import SEED, read

from kdx.data.corpora.induction import Induction


@given(SEED, st.integers(4, 40), st.integers(2, 30))
def test_an_answer_is_what_came_after_the_same_token_before(seed, length, symbols):
    found = read(Induction(), seed, length=length, symbols=symbols)
    first: dict[int, int] = {}
    expected = {}
    for place, token in enumerate(found.tokens):
        if token in first:
            expected[place] = found.tokens[first[token] + 1]
        else:
            first[token] = place
    assert found.answers == expected
    assert set(found.slices["distance"].values()) == {len(first)} and 2 * len(first) <= length == len(found.tokens)


def test_how_far_back_it_came_is_told_by_no_place():
    periods = {next(iter(read(Induction(), seed).slices["distance"].values())) for seed in range(200)}
    assert periods == set(range(2, 17))

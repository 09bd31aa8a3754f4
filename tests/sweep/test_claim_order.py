"""Processes that claim at the same time do not try the same runs one after another, and each tries every run."""

import random

from hypothesis import given
from hypothesis import strategies as st

from kdx.sweep.claim_order import ClaimOrder


@given(st.lists(st.integers(), unique=True), st.randoms(use_true_random=False))
def test_everything_comes_once_whoever_is_faster(wanted, draws):
    order = ClaimOrder(wanted)
    given_out = []
    for one in order:
        given_out.append(one)
        if draws.random() < 0.5:
            order.too_late()
    assert sorted(given_out) == sorted(wanted)


def test_alone_a_process_claims_the_first_one_first():
    assert [*ClaimOrder("abc")] == ["a", "b", "c"]


def test_of_a_thousand_that_begin_together_each_tries_a_few(monkeypatch):
    monkeypatch.setattr("kdx.sweep.claim_order.random", random.Random(0))
    workers, tries, rounds = 1000, 0, 0
    waiting = [ClaimOrder(range(2 * workers)) for _ in range(workers)]
    claimed: set[int] = set()
    while waiting:
        rounds += 1
        late = []
        for order in waiting:  # each tries one before anybody tries the next
            run = next(order)
            tries += 1
            if run in claimed:
                order.too_late()
                late.append(order)
            claimed.add(run)
        waiting = late
    assert len(claimed) == workers
    assert tries < 12 * workers and rounds < 40
    # One after another would be 500,500 tries in 1,000 rounds.

"""Runs share GPUs as the user asks; processes that claim at the same time try different runs."""

import random

from hypothesis import given
from hypothesis import strategies as st

from kdx.sweep.placement import ClaimOrder, Gpus, Placed


def placed(*gpus, alone=False):
    return [Placed(gpu, alone) for gpu in gpus]


def gpu_for(gpus, at_work, waiting=(), *, alone=False):
    """The GPU that a run gets; None if it gets none now."""
    place = gpus.place(at_work, [*waiting], alone=alone)
    return place and place.gpu


def test_a_run_gets_the_gpu_with_the_fewest_runs_and_the_first_of_several():
    gpus = Gpus(("3", "1"), on_each=3)
    assert gpu_for(gpus, []) == "3"
    assert gpu_for(gpus, placed("3")) == "1"
    assert gpu_for(gpus, placed("1", "3", "3")) == "1"
    assert gpu_for(gpus, placed("0")) == "3"  # one that is no longer to be had counts for nobody
    assert gpu_for(gpus, placed("1", "1", "1", "3", "3", "3")) is None
    assert gpu_for(Gpus(), []) is None


def test_a_run_that_is_alone_shares_its_gpu_with_nobody():
    gpus = Gpus(("0", "1"), on_each=3)
    assert gpu_for(gpus, placed("0"), alone=True) == "1"
    assert gpu_for(gpus, placed("0", "1"), alone=True) is None
    at_work = placed("0", alone=True) + placed("1", "1")
    assert gpu_for(gpus, at_work) == "1"
    assert gpu_for(gpus, at_work + placed("1")) is None


def test_a_run_that_is_to_be_alone_waits_for_the_gpu_with_the_fewest_runs_which_takes_no_more():
    gpus = Gpus(("0", "1"), on_each=3)
    at_work = placed("0", "0", "1")
    waiting: list[Placed] = []
    assert gpus.place(at_work, waiting, alone=True) is None
    assert waiting == placed("1", alone=True)
    assert gpu_for(gpus, at_work, waiting) == "0"
    for _ in range(2):  # then the other one; a third has nowhere to wait
        assert gpus.place(at_work, waiting, alone=True) is None
        assert [place.gpu for place in waiting] == ["1", "0"]


@given(
    names=st.lists(st.sampled_from("abcd"), min_size=1, unique=True),
    on_each=st.integers(1, 4),
    wanted=st.lists(st.booleans(), max_size=30),
)
def test_whatever_is_asked_no_gpu_gets_more_than_it_may(names, on_each, wanted):
    gpus = Gpus(tuple(names), on_each)
    at_work: list[Placed] = []
    for alone in wanted:
        gpu = gpu_for(gpus, at_work, alone=alone)
        if gpu is not None:
            alone = alone or on_each == 1
            beside = [place for place in at_work if place.gpu == gpu]
            assert not (alone and beside) and not any(place.alone for place in beside)
            assert len(beside) < on_each
            at_work.append(Placed(gpu, alone))
        elif not alone:
            assert all(
                any(place.gpu == name and place.alone for place in at_work)
                or sum(place.gpu == name for place in at_work) == on_each
                for name in names
            )


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
    monkeypatch.setattr("kdx.sweep.placement.random", random.Random(0))
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

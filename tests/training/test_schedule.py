"""The learning rate is a function of the step."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kdx.grid.sections import Training
from kdx.training.schedule import rate_factor
from kdx.vocabulary import Schedule


@given(st.sampled_from(Schedule), st.integers(0, 50), st.integers(1, 200), st.sampled_from([0.0, 0.1]))
def test_the_factor_rises_to_one_at_the_end_of_the_warm_up_and_never_exceeds_it(schedule, warmup, steps, final):
    # Warm-up and decay must fit into the run.
    assume(schedule is not Schedule.WARMUP_STABLE_DECAY or warmup + max(steps // 10, 1) <= steps)
    training = Training(schedule=schedule, warmup=warmup, steps=steps, final_rate=final)
    factors = [rate_factor(training, step) for step in range(steps)]
    assert all(0 <= factor <= 1 for factor in factors)
    if 0 < warmup <= steps:
        assert factors[warmup - 1] == pytest.approx(1.0)
        assert factors[:warmup] == sorted(factors[:warmup])
    assert factors[warmup:] == sorted(factors[warmup:], reverse=True)


def test_cosine_is_half_in_the_middle_and_zero_at_the_end():
    training = Training(schedule=Schedule.COSINE, warmup=0, steps=100)
    assert rate_factor(training, 49) == pytest.approx(0.5)
    assert rate_factor(training, 99) == pytest.approx(0.0)
    assert math.isfinite(rate_factor(training, 10_000))


def test_cosine_may_end_at_a_share_of_the_peak():
    training = Training(schedule=Schedule.COSINE, warmup=0, steps=100, final_rate=0.1)
    assert rate_factor(training, 49) == pytest.approx(0.55)
    assert rate_factor(training, 99) == rate_factor(training, 10_000) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.1), (9, 1.0), (40, 1.0), (79, 1.0), (84, 0.75), (89, 0.5), (99, 0.0), (500, 0.0)]
)
@pytest.mark.parametrize("final", [0.0, 0.2])
def test_warm_up_stable_decay_rises_stays_and_falls_in_a_line(step, expected, final):
    training = Training(schedule="warmup-stable-decay", warmup=10, steps=100, decay=20, final_rate=final)
    falls = step >= 80
    assert rate_factor(training, step) == pytest.approx(final + (1 - final) * expected if falls else expected)


def test_a_decay_of_all_that_is_left_has_no_stable_part():
    training = Training(schedule="warmup-stable-decay", warmup=10, steps=20, decay=10)
    assert [rate_factor(training, step) for step in (9, 10, 19)] == pytest.approx([1.0, 0.9, 0.0])

"""The learning rate is a function of the step."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.grid.sections import Training
from kdx.training.schedule import rate_factor
from kdx.vocabulary import Schedule


@given(st.sampled_from(Schedule), st.integers(0, 50), st.integers(1, 200))
def test_the_factor_rises_to_one_at_the_end_of_the_warm_up_and_never_exceeds_it(schedule, warmup, steps):
    training = Training(schedule=schedule, warmup=warmup, steps=steps)
    factors = [rate_factor(training, step) for step in range(steps)]
    assert all(0 <= factor <= 1 for factor in factors)
    if 0 < warmup <= steps:
        assert factors[warmup - 1] == pytest.approx(1.0)
        assert factors[:warmup] == sorted(factors[:warmup])
    assert factors[warmup:] == sorted(factors[warmup:], reverse=True)


def test_inverse_square_root_halves_at_four_times_the_warm_up():
    training = Training(schedule=Schedule.INVERSE_SQRT, warmup=100, steps=1000)
    assert rate_factor(training, 399) == pytest.approx(0.5)


def test_cosine_is_half_in_the_middle_and_zero_at_the_end():
    training = Training(schedule=Schedule.COSINE, warmup=0, steps=100)
    assert rate_factor(training, 49) == pytest.approx(0.5)
    assert rate_factor(training, 99) == pytest.approx(0.0)
    assert math.isfinite(rate_factor(training, 10_000))


def test_constant_stays():
    assert rate_factor(Training(schedule=Schedule.CONSTANT, warmup=10), 5000) == 1.0

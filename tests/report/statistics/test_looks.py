"""All looks together err as often as they say, whatever a single one says."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtr

from kdx.report.statistics.looks import Look

DRAWS = 100_000


def looks(first: int, last: int) -> list[Look]:
    return [Look(n, first, last) for n in range(first, last + 1)]


@cache
def p_values(first: int, last: int) -> dict[int, np.ndarray]:
    """Number of scores → the t-tests' lower one-sided p-values of that many scores around 0."""
    scores = np.random.default_rng(0).normal(size=(DRAWS, last))
    result = {}
    for n in range(first, last + 1):
        score = scores[:, :n]
        result[n] = stdtr(n - 1, score.mean(1) / (score.std(1, ddof=1) / np.sqrt(n)))
    return result


@pytest.mark.parametrize(("first", "last"), [(2, 5), (3, 12), (5, 20)])
@pytest.mark.parametrize("sides", [1, 2])
def test_a_p_value_over_all_looks_is_what_simulation_gives(first, last, sides):
    one_sided = p_values(first, last)
    single = {n: 2 * np.minimum(p, 1 - p) if sides == 2 else p for n, p in one_sided.items()}
    # How often some look is as extreme as the last one is at this level.
    least = np.min([p * (last / n) ** 3 for n, p in single.items()], axis=0)
    for level in (0.2, 0.03, 0.004):
        overall = Look(last, first, last).overall(level, sides=sides)
        met = float((least <= level).mean())
        assert overall == pytest.approx(met, abs=4 * np.sqrt(met / DRAWS) + 0.01 * met)


@pytest.mark.parametrize(("first", "last"), [(2, 3), (3, 12), (4, 30)])
def test_intervals_of_all_looks_hold_together(first, last):
    """The level of each is that at which its p-value over all looks is what the intervals together miss."""
    for look in looks(first, last):
        assert look.overall(1 - look.alone(0.95)) == pytest.approx(0.05, rel=1e-6)
        assert look.alone(0.99) > look.alone(0.95) > 0.95
    assert [look.n for look in looks(first, last)] == [*range(first, last + 1)]


def test_a_single_look_costs_nothing():
    only = Look(5, 5, 5)
    assert only.alone(0.95) == pytest.approx(0.95)
    assert only.overall(0.01) == pytest.approx(0.01) and only.overall(0.01, sides=1) == pytest.approx(0.01)


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(0, 6), st.data())
def test_a_p_value_over_all_looks_is_no_smaller_and_keeps_their_order(first, more, data):
    n = data.draw(st.integers(first, first + more))
    look = Look(n, first, first + more)
    low, high = sorted(data.draw(st.tuples(st.floats(1e-9, 1), st.floats(1e-9, 1))))
    assert 0 <= look.overall(low) <= look.overall(high) * 1.0001 <= 1.0001
    assert look.overall(low) >= low


@pytest.mark.parametrize("p", [0.0, 1e-300, 1e-12, 0.5, 1.0])
def test_the_ends_are_p_values(p):
    for sides in (1, 2):
        assert 0 <= Look(3, 3, 12).overall(p, sides=sides) <= 1
    assert Look(3, 3, 12).overall(1.0) == 1
    assert Look(3, 3, 12).overall(0.0) == 0


def test_an_early_look_has_to_show_more():
    levels = [1 - look.alone(0.95) for look in looks(3, 12)]
    assert levels == sorted(levels) and levels[0] < 0.001 and 0.025 < levels[-1] < 0.035

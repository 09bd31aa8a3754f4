"""Mean and spread over seeds."""

from fractions import Fraction
from math import inf, isclose, isnan, nan, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.report.statistics import Summary, summarise

finite = st.floats(-1e100, 1e100)


def test_spread_divides_by_n_minus_one() -> None:
    assert summarise([1.0, 2.0, 3.0]) == Summary(3, 2.0, 1.0)
    assert summarise([1.0, 2.0]) == Summary(2, 1.5, sqrt(0.5))


def test_one_seed_has_no_spread_and_none_has_no_summary() -> None:
    assert summarise([30.5]) == Summary(1, 30.5, None)
    assert summarise([]) is None


def test_equal_scores_have_no_spread_at_all() -> None:
    assert summarise([0.1] * 3) == Summary(3, 0.1, 0.0)


@pytest.mark.parametrize(("scores", "mean"), [([1.0, inf], inf), ([-inf, 1.0], -inf)])
def test_an_infinite_score_makes_the_mean_infinite_and_the_spread_nan(scores: list[float], mean: float) -> None:
    summary = summarise(scores)
    assert summary and summary.mean == mean and summary.sd is not None and isnan(summary.sd)


def test_nan_spreads() -> None:
    summary = summarise([1.0, nan])
    assert summary and isnan(summary.mean) and summary.sd is not None and isnan(summary.sd)
    lone = summarise([nan])
    assert lone and isnan(lone.mean) and lone.sd is None


@given(st.lists(finite, min_size=2, max_size=10))
def test_mean_lies_among_the_scores_and_spread_is_theirs_by_definition(scores: list[float]) -> None:
    summary = summarise(scores)
    assert summary and summary.sd is not None
    assert min(scores) <= summary.mean <= max(scores)
    exact = [Fraction(score) for score in scores]
    squares = sum((score - sum(exact) / len(exact)) ** 2 for score in exact)
    # Squared, since a fraction has no root; the square of a tiny spread vanishes.
    assert isclose(summary.sd**2, float(squares / (len(scores) - 1)), rel_tol=1e-12, abs_tol=1e-200)

"""Verdicts on trials: a pure function of a curve and of the trials of the rounds before."""

import pytest

from kdx.grid.tuning import Pruner
from kdx.store.records import TrialState
from kdx.tune.known_trial import KnownTrial, Rivals
from kdx.tune.pruning import Judge, ended_early
from kdx.vocabulary import Direction

STEPS = (10, 20, 30, 40, 50, 60, 70, 80)


def trials(count: int = 8) -> tuple[KnownTrial, ...]:
    """Losses of rising quality: the first is the best."""
    return tuple(
        KnownTrial(n, {}, {}, TrialState.COMPLETED, 1.0 + n, {step: 10 - step / 10 + n for step in STEPS})
        for n in range(count)
    )


def rivals(pruner: Pruner, known=None, number: int = 8) -> Rivals:
    return Rivals(pruner, Direction.MIN, "0" * 32, number, len(STEPS) + 1, trials() if known is None else known)


def curve(offset: float) -> dict[int, float]:
    return {step: 10 - step / 10 + offset for step in STEPS}


def test_the_median_ends_what_is_worse_and_leaves_what_is_better():
    assert ended_early(rivals(Pruner.MEDIAN), curve(20)) == 10
    assert ended_early(rivals(Pruner.MEDIAN), curve(-1)) is None


def test_the_good_end_may_be_the_largest():
    of = Rivals(Pruner.MEDIAN, Direction.MAX, "0" * 32, 8, 9, trials())
    assert ended_early(of, curve(20)) is None and ended_early(of, curve(-1)) == 10


def test_nothing_ends_early_without_a_pruner_or_rivals():
    assert ended_early(rivals(Pruner.NONE), curve(99)) is None
    assert ended_early(rivals(Pruner.MEDIAN, ()), curve(99)) is None


def test_hyperband_ends_the_worst_of_some_bracket_and_never_the_best():
    ends = {number: ended_early(rivals(Pruner.HYPERBAND, number=number), curve(20)) for number in range(8, 40)}
    assert any(end is not None for end in ends.values())
    assert all(ended_early(rivals(Pruner.HYPERBAND, number=number), curve(-5)) is None for number in range(8, 40))


def test_the_signed_rank_test_compares_over_tuning_seeds():
    best = KnownTrial(0, {}, {}, TrialState.COMPLETED, 1.0, {seed: 1.0 + seed / 100 for seed in range(8)})
    of = Rivals(Pruner.WILCOXON, Direction.MIN, "0" * 32, 1, 9, (best,))
    assert ended_early(of, {seed: 2.0 + seed / 50 for seed in range(8)}) in range(1, 8)
    assert ended_early(of, {seed: 0.5 + seed / 50 for seed in range(8)}) is None


@pytest.mark.parametrize("pruner", [Pruner.MEDIAN, Pruner.HYPERBAND])
@pytest.mark.parametrize("offset", [-1.0, 3.5, 20.0])
def test_a_worker_ends_a_run_where_its_whole_curve_says(pruner, offset):
    """Also one that goes on from a checkpoint, with rows beyond it recorded."""
    of, whole = rivals(pruner), curve(offset)
    end = ended_early(of, whole)
    judge = Judge(of.text(), {})
    said = [step for step, score in whole.items() if judge.why_pruned(step, score)]
    assert said[:1] == ([] if end is None else [end])
    if end is not None:
        again = Judge(of.text(), whole)
        assert "pruned by a search" in again.why_pruned(end, whole[end])
        assert all(again.why_pruned(step, whole[step]) is None for step in STEPS if step < end)


def test_a_trial_without_a_value_is_no_rival():
    failed = tuple(KnownTrial(n, {}, {}, TrialState.FAILED) for n in range(8))
    assert ended_early(rivals(Pruner.MEDIAN, failed), curve(99)) is None

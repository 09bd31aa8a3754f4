"""The variance that crossed sources contribute is estimated by REML, with intervals by its profile."""

import itertools
import math
import warnings

import numpy as np
import pytest

from kdx.report.statistics.variance_components import LEAST_LEVELS, NotEstimable, variance_components

NAMES = ("initialisation", "order", "dropout")


def crossed(levels):
    """Source → the level of each combination."""
    return dict(zip(NAMES, map(list, zip(*itertools.product(*map(range, levels)), strict=True)), strict=False))


def drawn(generator, levels, sds, rest):
    """Scores of every combination, from a model with these standard deviations."""
    of = crossed(levels)
    effects = [generator.normal(0, sd, count) for sd, count in zip(sds, levels, strict=True)]
    total = sum(effect[index] for effect, index in zip(effects, of.values(), strict=True))
    return (30 + total + generator.normal(0, rest, len(total))).tolist(), of


def mean_squares(scores, levels):
    """What REML comes to in a balanced design where no variance is 0."""
    table = np.array(scores).reshape(levels)
    n, mean, axes = table.size, table.mean(), range(len(levels))
    between = [
        n / count * ((table.mean(axis=tuple(other for other in axes if other != axis)) - mean) ** 2).sum() / (count - 1)
        for axis, count in enumerate(levels)
    ]
    freedom = n - 1 - sum(count - 1 for count in levels)
    explained = sum(one * (count - 1) for one, count in zip(between, levels, strict=True))
    rest = (((table - mean) ** 2).sum() - explained) / freedom
    return [(one - rest) / (n / count) for one, count in zip(between, levels, strict=True)], rest


def test_a_balanced_design_gives_what_its_mean_squares_do():
    scores, of = drawn(np.random.default_rng(3), (3, 4, 5), (2.0, 1.5, 1.0), 0.5)
    found = variance_components(scores, of)
    sources, rest = mean_squares(scores, (3, 4, 5))
    assert min(sources) > 0
    assert [one.variance for one in found.sources.values()] == pytest.approx(sources, rel=1e-3)
    assert found.rest.variance == pytest.approx(rest, rel=1e-3)
    assert [one.levels for one in found.sources.values()] == [3, 4, 5] and found.rest.levels == 60 - 1 - 9
    assert found.total == pytest.approx(sum(sources) + rest, rel=1e-3)
    assert sum(found.share(one) for one in (*found.sources.values(), found.rest)) == pytest.approx(1)


def test_an_unbalanced_design_gives_what_statsmodels_does():
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    scores, of = drawn(np.random.default_rng(3), (4, 4, 4), (2.0, 1.5, 1.0), 0.5)
    kept = [place for place in range(64) if place % 7]
    y, of = np.array(scores)[kept], {name: [its[place] for place in kept] for name, its in of.items()}
    incidence = [np.eye(4)[its] for its in of.values()]
    parts = VCSpec(list(of), [[list("0123")]] * 3, [[one] for one in incidence])
    model = MixedLM(y, np.ones((len(y), 1)), np.zeros(len(y)), exog_re=np.zeros((len(y), 0)), exog_vc=parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = model.fit(reml=True)
    found = variance_components(y.tolist(), of)
    assert [one.variance for one in found.sources.values()] == pytest.approx(list(fit.vcomp), rel=5e-3)
    assert found.rest.variance == pytest.approx(fit.scale, rel=5e-3)


def test_the_unit_of_the_scores_does_not_matter():
    scores, of = drawn(np.random.default_rng(3), (3, 3, 3), (2.0, 1.0, 1.0), 1.0)
    one, other = variance_components(scores, of), variance_components([1e-3 * score - 7 for score in scores], of)
    for left, right in zip((*one.sources.values(), one.rest), (*other.sources.values(), other.rest), strict=True):
        assert right.sd == pytest.approx(1e-3 * left.sd, rel=1e-2, abs=1e-6)
        assert math.sqrt(right.high) == pytest.approx(1e-3 * math.sqrt(left.high), rel=1e-2)


def test_a_source_that_does_nothing_has_no_variance_but_an_upper_end():
    scores = [10 + 3 * i + 0.1 * ((i + o + d) % 3) for i, o, d in itertools.product(range(3), repeat=3)]
    found = variance_components(scores, crossed((3, 3, 3)))
    order = found.sources["order"]
    assert (order.variance, order.low) == (0, 0) and 0 < order.high < 0.1
    assert found.sources["initialisation"].sd == pytest.approx(3, rel=0.01)


def test_scores_that_never_differ_have_no_variance():
    found = variance_components([0.1] * 27, crossed((3, 3, 3)))
    assert found.total == 0 and found.share(found.rest) is None


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (crossed((2, 3, 3)), "initialisation has 2 seeds with a score, and its variance needs 3 at least"),
        ({"order": [0, 1, 2, 0, 1, 2], "dropout": [0, 1, 2, 0, 1, 2]}, "order and dropout vary together; cross"),
        ({"order": [0, 0, 1, 1, 2], "dropout": [0, 1, 1, 2, 2]}, "5 scores leave none for the rest; it takes 6"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(of, reason):
    n = len(next(iter(of.values())))
    with pytest.raises(NotEstimable, match=reason):
        variance_components([float(place % 5) for place in range(n)], of)
    assert LEAST_LEVELS == 3


@pytest.mark.parametrize("levels", [3, 5])
def test_known_variances_are_recovered_and_lie_in_their_intervals(levels, figure):
    generator, truth, draws = np.random.default_rng(levels), (1.0, 0.5, 0.0), 30
    variances, covered = [], []
    for _ in range(draws):
        scores, of = drawn(generator, (levels,) * 3, truth, 1.0)
        found = [*(result := variance_components(scores, of)).sources.values(), result.rest]
        variances.append([one.variance for one in found])
        covered.append([one.low <= sd**2 <= one.high for one, sd in zip(found, (*truth, 1.0), strict=True)])
    means, shares = np.mean(variances, axis=0), np.mean(covered, axis=0)
    figure(f"{levels} levels: means {means.round(2)}, covered {shares.round(2)}")
    assert means == pytest.approx([1.0, 0.25, 0.0, 1.0], abs=0.45)
    assert shares.min() >= 0.85

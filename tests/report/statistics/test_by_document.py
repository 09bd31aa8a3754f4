"""The error over documents, against the mean squares of a two-way table and the jackknife by its definition."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from kdx.report.statistics.by_document import (
    Documents,
    bleu_by_document,
    by_document,
    document_error,
    together,
)
from kdx.report.statistics.estimates import Estimate, Summary, contrast, summarise

Table = np.ndarray


def scores_of(sums: Table, targets: Table | None = None) -> tuple[Summary, object]:
    """The scores of (S, D) sums, over seeds and by document."""
    targets = np.ones(sums.shape[1]) if targets is None else targets
    summary = summarise([float(each) for each in sums.sum(1) / targets.sum()])
    assert summary
    return summary, by_document("block", targets.tolist(), sums.tolist())


def table(seed: int, seeds: int = 4, documents: int = 9) -> Table:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(seeds, 1)) + 2 * rng.normal(size=documents) + rng.normal(size=(seeds, documents))


def difference(*tables: Table, targets: Table | None = None) -> Estimate:
    parts, documents = zip(*(scores_of(each, targets) for each in tables), strict=True)
    estimate = contrast([*zip((1.0, -1.0), parts, strict=False)], documents)
    assert estimate
    return estimate


def test_of_equal_documents_it_is_the_variance_of_a_two_way_table():
    scores = table(0)
    (n, d), result = scores.shape, difference(scores)
    rows, columns, mean = scores.mean(1), scores.mean(0), scores.mean()
    of_seeds = d * ((rows - mean) ** 2).sum() / (n - 1)
    of_documents = n * ((columns - mean) ** 2).sum() / (d - 1)
    rest = ((scores - rows[:, None] - columns + mean) ** 2).sum() / ((n - 1) * (d - 1))
    assert result.error**2 == pytest.approx((of_seeds + of_documents - rest) / (n * d), rel=1e-9)
    assert result.documents == Documents("block", 9)
    # Both parts have their own degrees of freedom, by their share of the variance.
    shares = of_seeds / (n * d) / result.error**2, of_documents / (n * d) / result.error**2
    assert result.df == pytest.approx(min((n - 1) / shares[0], (d - 1) / shares[1]))


@given(st.integers(0, 1000), st.lists(st.integers(1, 500), min_size=2, max_size=8))
def test_over_documents_it_is_the_jackknife_of_the_ratio(seed, sizes):
    targets = np.array(sizes, float)
    sums = table(seed, documents=len(sizes)) * targets
    _, known = scores_of(sums, targets)
    result = document_error([(-2.0, known)])
    without = [float(np.delete(sums, d, 1).sum(1).mean() / np.delete(targets, d).sum()) for d in range(len(sizes))]
    whole = sums.sum(1).mean() / targets.sum()
    jackknife = (len(sizes) - 1) / len(sizes) * sum((each - whole) ** 2 for each in without)
    assert result and result.variance == pytest.approx(4 * jackknife, rel=1e-7, abs=1e-12)
    assert result.df == pytest.approx(max(1.0, targets.sum() ** 2 / (targets**2).sum() - 1))


def test_what_moves_both_cells_in_a_document_is_no_error_of_their_difference():
    common = 100 * np.random.default_rng(1).normal(size=9)
    plain, moved = (difference(table(2) + shift, table(3) + shift) for shift in (0.0, common))
    assert moved.error == pytest.approx(plain.error, rel=1e-6)
    assert difference(table(2) + common).error > 10 * moved.error


def test_the_error_is_no_less_than_over_seeds_or_over_documents_alone():
    for seed in range(50):
        scores = np.random.default_rng(seed).normal(size=(2, 5))
        result, over_documents = difference(scores), document_error([(1.0, scores_of(scores)[1])])
        assert result.over_seeds and result.error >= result.over_seeds.error
        assert over_documents and result.error >= sqrt(over_documents.variance) * (1 - 1e-12)


def test_without_common_documents_it_is_over_seeds_alone():
    parts, documents = zip(scores_of(table(0)), scores_of(table(1)), strict=True)
    weights = [*zip((1.0, -1.0), parts, strict=True)]
    alone = contrast(weights)
    assert contrast(weights, [documents[0], None]) == contrast(weights, [None, None]) == alone
    other = by_document("article", [1.0] * 9, table(1).tolist())
    assert contrast(weights, [documents[0], other]) == alone
    assert contrast(weights, [documents[0], scores_of(table(1, documents=8))[1]]) == alone
    assert alone and alone.documents is None


@pytest.mark.parametrize("targets", [[5.0], [5.0, 0.0], [0.0, 0.0]])
def test_one_document_alone_gives_no_error(targets):
    assert by_document("block", targets, [[1.0] * len(targets)] * 2) is None
    assert by_document("block", [1.0, 1.0], [[1.7e308, 1.7e308], [0.0, 0.0]]) is None


def test_a_document_without_targets_does_not_count():
    sums = [[1.0, 0.0, 3.0], [2.0, 0.0, 5.0]]
    result, plain = by_document("block", [1, 0, 2], sums), by_document("block", [1, 2], [[1.0, 3.0], [2.0, 5.0]])
    assert result and plain and result.documents.number == 2
    assert result.differences.tolist() == plain.differences.tolist()


def test_scores_of_the_same_seeds_add_up_before_they_are_averaged():
    first, second = table(4), table(5)
    joint = together([(1.0, scores_of(first)[1]), (-0.5, scores_of(second)[1])])
    assert joint and joint.differences == pytest.approx(scores_of(first - 0.5 * second)[1].differences, abs=1e-12)
    assert together([(1.0, scores_of(first)[1]), (1.0, scores_of(table(5, seeds=3))[1])]) is None


def test_more_seeds_leave_the_error_over_documents():
    """Seeds hardly differ, documents do: no number of seeds shows a difference as large as that error."""
    rng = np.random.default_rng(6)
    estimate = difference(*(rng.normal(size=50) + 0.01 * rng.normal(size=(3, 50)) for _ in range(2)))
    assert estimate.over_documents == pytest.approx(estimate.error, rel=0.01)
    value = 2 * estimate.error
    moved = replace(estimate, value=value)
    assert moved.seeds_to_show(0.0, float("inf"), 3) is None
    assert Estimate(value, estimate.error, 4, estimate.sd, 4).seeds_to_show(0.0, float("inf"), 3) is not None


def test_the_effect_is_in_standard_deviations_over_seeds_whatever_the_error_is_over():
    estimate = difference(table(7), table(8))
    assert estimate.over_seeds and estimate.effect == estimate.over_seeds.effect
    assert estimate.sd == estimate.over_seeds.sd and estimate.p != estimate.over_seeds.p
    assert sqrt(estimate.over_documents**2 + estimate.over_seeds.error**2) == pytest.approx(estimate.error)


LINES = [
    ("a man rides a brown horse on the beach", "a man is riding a brown horse on the beach"),
    ("two dogs run through the wet grass", "two dogs are running through wet grass"),
    ("a child plays with a red ball in the park", "a small child plays with a red ball in a park"),
    ("people sit at a long table and eat dinner", "people sit at a long table and eat their dinner"),
    ("the woman in a blue coat reads a book", "a woman in a blue coat is reading a book"),
]


def bleu_sums(lines: list[tuple[str, str]]) -> dict[str, list[float]]:
    """The sums of BLEU, each line a document."""
    bleu = BLEU(tokenize="none", force=True)
    result = [bleu.corpus_score([line], [[reference]]) for line, reference in lines]
    return {
        **{f"matches_{n}": [each.counts[n - 1] for each in result] for n in (1, 2, 3, 4)},
        **{f"ngrams_{n}": [each.totals[n - 1] for each in result] for n in (1, 2, 3, 4)},
        "words": [each.sys_len for each in result],
        "reference_words": [each.ref_len for each in result],
    }


def test_bleu_moves_by_what_it_is_without_each_document():
    def score(lines: list[tuple[str, str]]) -> float:
        translations, references = zip(*lines, strict=True)
        return BLEU(tokenize="none", force=True).corpus_score(translations, [references]).score

    longer = [(f"{line} today", reference) for line, reference in LINES]
    result = bleu_by_document("block", [1.0] * 5, [bleu_sums(LINES), bleu_sums(longer)])
    assert result and result.documents == Documents("block", 5)
    for seed, lines in enumerate((LINES, longer)):
        without = np.array([score(lines[:d] + lines[d + 1 :]) for d in range(5)])
        assert result.differences[seed] == pytest.approx(without.mean() - without, abs=1e-9)


def test_bleu_that_is_smoothed_is_over_seeds_alone():
    apart = [("one two three four five", "six seven eight nine ten")] * 3
    assert bleu_by_document("block", [1.0] * 3, [bleu_sums(apart)]) is None
    assert bleu_by_document("block", [1.0, 0.0, 0.0], [bleu_sums(LINES[:3])]) is None

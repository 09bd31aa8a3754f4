"""The error of scores over documents, crossed with that over seeds.

Every seed of a cell is tested on the same documents, and so are the cells that are compared. So scores err in two
directions: with other seeds, and with other documents of the same kind. The variance of a mean is that over seeds, plus
that over documents, minus their interaction, which both of them hold (two-way crossed random effects; Searle, Casella &
McCulloch 1992, Ch. 4). In a bootstrap that draws both, the interaction counts thrice (Owen 2007, "The pigeonhole
bootstrap").

A score is a ratio of two sums over documents, such as nats over tokens, or like BLEU a function of several, and large
documents weigh more. So the variance over documents is that of the jackknife, which leaves out one document at a time.
Of a mean over a few very unequal documents such intervals miss more than 5% (7 to 17% of 20 lognormal ones whose
logarithms have a standard deviation of 1.5), of a difference they do not. Its degrees of freedom are those of as
many equal documents as weigh the same, (Σ M)² / Σ M² for M targets in each (Kish 1965).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Documents:
    """The documents of a test that have targets."""

    unit: str
    """What each is, in the singular: `article` or `block`."""
    number: int


def over(documents: Documents | None) -> str:
    """What an error is over: `seeds crossed with 60 articles of the test`."""
    if documents is None:
        return "seeds alone"
    return f"seeds crossed with {documents.number} {documents.unit}s of the test"


@dataclass(frozen=True, eq=False)
class ByDocument:
    """How the scores of a cell's seeds depend on single documents. S is the number of seeds, D that of documents."""

    documents: Documents
    targets: NDArray[np.float64]
    """The number of targets in each document, (D,)."""
    differences: NDArray[np.float64]
    """Each seed's score minus its score without that document, (S, D)."""

    def scaled(self, factors: Sequence[float]) -> "ByDocument":
        """The same of scores that are multiplied by these factors, (S,)."""

        return ByDocument(self.documents, self.targets, np.array(factors)[:, None] * self.differences)


@dataclass(frozen=True)
class DocumentError:
    """The error over documents of a weighted sum of means over seeds."""

    variance: float
    """Over documents, with the interaction."""
    interaction: float
    """The variance that it shares with the variance over seeds."""
    df: float
    """Degrees of freedom of `variance`, 1 or more."""


def by_document(
    unit: str, targets: Sequence[float], sums: Sequence[Sequence[float]], *, times: float = 1.0
) -> ByDocument | None:
    """The scores `times` × Σ sums / Σ targets, document by document.

    Args:
        targets: in each document, (D,).
        sums: of each seed in each document, (S, D).

    Returns:
        None where fewer than two documents have targets, or the numbers are too large for a double.
    """
    some = np.array(targets, dtype=float)
    there = some > 0
    if there.sum() < 2:
        return None
    some, table = some[there], times * np.array(sums, dtype=float)[:, there]
    with np.errstate(over="ignore", invalid="ignore"):
        whole, total = table.sum(axis=1, keepdims=True), some.sum()
        differences = whole / total - (whole - table) / (total - some)
    return ByDocument(Documents(unit, len(some)), some, differences) if np.isfinite(differences).all() else None


def bleu_by_document(
    unit: str, targets: Sequence[float], sums: Sequence[Mapping[str, Sequence[float]]]
) -> ByDocument | None:
    """BLEU of each seed, document by document.

    Args:
        targets: in each document, (D,).
        sums: of each seed, quantity (`kdx.training.bleu.Bleu.sums`) → its sum in each document.

    Returns:
        None where fewer than two documents have targets, or a text has no n-gram in common with its references, for
        which BLEU is smoothed.
    """
    some = np.array(targets, dtype=float)
    there = some > 0
    if there.sum() < 2:
        return None

    def left(*names: str) -> Any:
        """The sums over all documents, and without each, (names, S, 1 + D)."""
        table = np.array([[of_seed[name] for of_seed in sums] for name in names], dtype=float)[:, :, there]
        whole = table.sum(axis=2, keepdims=True)
        return np.concatenate([whole, whole - table], axis=2)

    matches, ngrams = (left(*(f"{kind}_{n}" for n in (1, 2, 3, 4))) for kind in ("matches", "ngrams"))
    words, reference_words = left("words", "reference_words")
    if not (matches > 0).all():
        return None
    brevity = np.exp(np.minimum(0.0, 1 - reference_words / words))
    scores = 100 * brevity * np.exp(np.log(matches / ngrams).mean(axis=0))
    differences = scores[:, :1] - scores[:, 1:]
    # The score is no linear function of the sums, so their mean is not 0.
    centred = differences - differences.mean(axis=1, keepdims=True)
    return ByDocument(Documents(unit, int(there.sum())), some[there], centred)


def together(parts: Sequence[tuple[float, ByDocument]]) -> ByDocument | None:
    """A weighted sum of scores of the same seeds; None where the documents or the numbers of seeds are not the same."""
    first = parts[0][1]
    if not _same_documents(parts) or any(len(scores.differences) != len(first.differences) for _, scores in parts):
        return None
    differences = np.sum([weight * scores.differences for weight, scores in parts], axis=0)
    return ByDocument(first.documents, first.targets, differences)


def document_error(parts: Sequence[tuple[float, ByDocument]]) -> DocumentError | None:
    """The error over documents of a weighted sum of means, each over its own seeds; documents are common to all.

    Returns:
        None where the documents are not the same, or a mean is of a single seed.
    """
    if not _same_documents(parts) or any(len(scores.differences) < 2 for _, scores in parts):
        return None
    targets = parts[0][1].targets
    jackknife = (len(targets) - 1) / len(targets)
    of_means, interaction = np.zeros(len(targets)), 0.0
    for weight, scores in parts:
        n, mean = len(scores.differences), scores.differences.mean(axis=0)
        of_means += weight * mean
        interaction += weight**2 * float(((scores.differences - mean) ** 2).sum()) / (n * (n - 1))
    equal = float(targets.sum() ** 2 / (targets**2).sum())
    variance = jackknife * float((of_means**2).sum())
    return DocumentError(variance, jackknife * interaction, max(1.0, equal - 1))


def _same_documents(parts: Sequence[tuple[float, ByDocument]]) -> bool:
    first = parts[0][1]
    return all(
        scores.documents == first.documents and np.array_equal(scores.targets, first.targets) for _, scores in parts
    )

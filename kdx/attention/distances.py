"""Distances from a query to a key, position of k − position of q, without a tensor of pairs × features.

If both have consecutive known positions, a row of distances is the row above it, shifted by one: numbers computed once
for each distance become numbers of pairs by a view. Otherwise each pair is looked up.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.interfaces import Settings, TokenPositions, extremes
from kdx.words import option


def relative_positions(at_query: TokenPositions, at_key: TokenPositions) -> range | None:
    """Return all distances, from (last query, first key) to (first query, last key); None if positions are unknown."""
    if at_query.start is None or at_key.start is None:
        return None
    shift = at_key.start - at_query.start
    return range(shift - at_query.positions.size(-1) + 1, shift + at_key.positions.size(-1))


def pair_distances(at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
    """Return the distance of each pair, integers (…, Tq, Tk)."""
    return at_key.positions.unsqueeze(-2) - at_query.positions.unsqueeze(-1)


def skew(scores: Tensor) -> Tensor:
    """Map scores of each query at all `relative_positions`, (…, Tq, Tq + Tk - 1), to its pairs: (…, Tq, Tk).

    Scores must not be expanded over the queries.
    """
    return _pairs(scores)


def unskew(weights: Tensor) -> Tensor:
    """Reverse `skew`: map weights (…, Tq, Tk) to weights by distance, (…, Tq, Tq + Tk - 1), 0 elsewhere."""
    queries, keys = weights.shape[-2:]
    by_distance = weights.new_zeros(*weights.shape[:-1], queries + keys - 1)
    _pairs(by_distance).copy_(weights)
    return by_distance


def _pairs(by_distance: Tensor) -> Tensor:
    """Return a view of the pairs: the next query is one distance back."""
    queries, distances = by_distance.shape[-2:]
    if queries == 1:
        return by_distance
    # One view, since the gradient of each is a tensor of zeros and a copy.
    *outer, row, column = by_distance.stride()
    return by_distance.as_strided(
        (*by_distance.shape[:-1], distances - queries + 1),
        (*outer, row - column, column),
        by_distance.storage_offset() + (queries - 1) * column,
    )


class ByTable:
    """The options of components that have a table of distances."""

    clip: int | str = option(16, minimum=0, also=("none",))
    """The distance from which on all distances share a vector; none: each has its own."""
    sharing: str = option("per-head", words=("per-head", "shared"))
    """Whether each head has a table (Shaw et al. 2018, in print), or all share one (their code)."""


class DistanceTable(nn.Module):
    """A vector for each distance up to ±clip; larger distances share the last one (Shaw et al. 2018, Sec. 3.2).

    Distance j - i has row clip(j - i, -clip, clip) + clip, drawn from N(0, 1/D), for each head or shared by all.
    Without clipping the table reaches to the distance `max_positions` - 1, and a pair farther apart is refused.
    """

    def __init__(self, settings: Settings, clip: int | str, sharing: str) -> None:
        super().__init__()
        self.bounded = clip == "none"
        self.clip = settings.max_positions - 1 if clip == "none" else int(clip)
        heads = settings.heads if sharing == "per-head" else 1
        self.weight = nn.Parameter(torch.empty(heads, 2 * self.clip + 1, settings.head_width))
        nn.init.normal_(self.weight, std=settings.head_width**-0.5)

    def products(self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        """Return ⟨q, a⟩ of each pair: (B, H, Tq, D) to (B, H, Tq, Tk)."""
        distances = relative_positions(at_query, at_key)
        if distances is None:
            scores = query @ self.weight.transpose(-2, -1)
            return scores.gather(-1, self._rows(at_query, at_key).expand(*scores.shape[:-1], -1))
        before, rows, after = self._span(distances)
        scores = query @ self.weight[:, rows].transpose(-2, -1)
        first, last = scores[..., :1], scores[..., -1:]
        ends = [first.expand(*scores.shape[:-1], before), scores, last.expand(*scores.shape[:-1], after)]
        return skew(torch.cat(ends, -1))

    def sums(self, weights: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        """Return Σ w a over the pairs of each query: (B, H, Tq, Tk) to (B, H, Tq, D)."""
        distances = relative_positions(at_query, at_key)
        if distances is None:
            totals = weights.new_zeros(*weights.shape[:-1], self.weight.size(1))
            index = self._rows(at_query, at_key).expand_as(weights)
            return totals.scatter_add(-1, index, weights).to(self.weight.dtype) @ self.weight
        before, rows, after = self._span(distances)
        inside = len(distances) - before - after
        first, totals, last = torch.split(unskew(weights), [before, inside, after], -1)
        totals = totals + F.pad(first.sum(-1, keepdim=True), (0, inside - 1))
        totals = totals + F.pad(last.sum(-1, keepdim=True), (inside - 1, 0))
        return totals.to(self.weight.dtype) @ self.weight[:, rows]

    def _span(self, distances: range) -> tuple[int, slice, int]:
        """Return the number of further distances that share the first row, the rows, and the same for the last row."""
        ends = distances.start, distances.stop - 1
        self._check(*ends)
        first, last = (min(max(end, -self.clip), self.clip) for end in ends)
        before = min(max(first - distances.start, 0), len(distances) - 1)
        rows = slice(first + self.clip, last + self.clip + 1)
        return before, rows, len(distances) - before - (last - first + 1)

    def _rows(self, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        distances = pair_distances(at_query, at_key)
        if self.bounded:
            self._check(*extremes(distances) or ())
        rows = distances.clamp(-self.clip, self.clip) + self.clip
        return rows if rows.dim() == 2 else rows.unsqueeze(1)  # (…, 1, Tq, Tk)

    def _check(self, *distances: int) -> None:
        farthest = max(map(abs, distances), default=0)
        if self.bounded and farthest > self.clip:
            raise ValueError(
                f"distance: {farthest} is not in the table; allowed: up to {self.clip} (`max_positions`), or a clip"
            )

"""Relative position of Transformer-XL.

R_(i-j) is the sinusoid of the distance, M wide, and W_R is M × D for each head, without bias. √D, and the M/2
frequencies, are those of Dai et al.'s code; without u and v it is Eq. 5 as printed. u and v belong to each layer,
unless a stack of layers makes them one pair.

The factor is computed for each distance and skewed to the pairs. Since sines and cosines of a difference expand, it is
also a dot product of M more columns: forward and backward on one thread that took 1.3 to 3.1 times the time at 128, 512
and 1024 tokens with 4 and 8 heads, and less (0.85 to 0.96) only with a single head from 512 tokens on.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.distances import pair_distances, relative_positions, skew
from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.attention.interfaces import Part, PositionScheme, Settings, TokenPositions
from kdx.attention.positions.blockwise import Blockwise
from kdx.words import option


class Relative(Blockwise):
    """Transformer-XL's relative position."""

    name = "relative"
    formula = "k(x_q, x_k) = k_F(q + u, k) · exp(⟨q + v, R_(i-j) W_R⟩ / √D)"
    source = "Tsai et al. 2019, Eq. 5; Dai et al. 2019"
    even = "width"
    xl_bias: str = option("learned", words=("none", "learned", "shared"), follows=("symmetry",))
    """Transformer-XL's u and v (Dai et al. 2019): none, as printed in Eq. 5; learned in each layer; or shared by all
    layers, as in Dai et al.'s code. A symmetric kernel has none."""
    position_dropout: float = option(0.0, minimum=0, below=1)
    """Probability of dropping a feature of the distance's sinusoid in training."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.shape = (settings.heads, settings.head_width)
        self.sinusoid = Sinusoidal(settings.width, settings.max_positions)
        self.projection = nn.Linear(settings.width, settings.heads * settings.head_width, bias=False)
        nn.init.xavier_uniform_(self.projection.weight)
        learned = self.xl_bias != "none"
        self.u = nn.Parameter(torch.zeros(self.shape)) if learned else None
        self.v = nn.Parameter(torch.zeros(self.shape)) if learned else None

    def share(self, other: PositionScheme) -> None:
        if self.xl_bias == "shared":
            assert isinstance(other, Relative)
            self.u, self.v = other.u, other.v

    def query(self, query: Tensor, place: TokenPositions) -> Tensor:
        return query if self.u is None else query + self.u.unsqueeze(1).to(query.dtype)

    def blockwise(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor]:
        distances = relative_positions(at_query, at_key)
        if distances is None:
            pairs = pair_distances(at_query, at_key)
            distances = range(int(pairs.min()), int(pairs.max()) + 1)
        first, projected = distances.start, self._projected(distances, at_key.positions.device)
        table = projected.transpose(-2, -1).contiguous()  # (H, D, n)

        def by_distance(query: Tensor, query_part: slice, key_part: Part) -> Tensor:
            at_query_part, at_key_part = at_query.part(query_part), at_key.part(key_part)
            part_distances = relative_positions(at_query_part, at_key_part)
            if part_distances is not None:
                near = table[..., part_distances.start - first : part_distances.stop - first]
                return skew(self._products(query, near))
            scores = self._products(query, table)
            index = pair_distances(at_query_part, at_key_part) - first
            index = index if index.dim() == 2 else index.unsqueeze(1)
            return scores.gather(-1, index.expand(*scores.shape[:-1], -1))

        return by_distance

    def _products(self, query: Tensor, table: Tensor) -> Tensor:
        """Return (q + v) R W_R / √D at each distance, (B, H, Tq, D) and (H, D, n) to (B, H, Tq, n)."""
        query = query if self.v is None else query + self.v.unsqueeze(1).to(query.dtype)
        # One product for each head, since the table is the same for the whole batch.
        rows = (query / math.sqrt(self.shape[1])).transpose(0, 1)
        return (rows.flatten(1, 2) @ table).view(*rows.shape[:-1], table.size(-1)).transpose(0, 1)

    def _projected(self, distances: range, device: torch.device) -> Tensor:
        """Return R W_R at distances from query to key, (H, n, D)."""
        # R takes i - j, the opposite sign.
        sinusoid = self.sinusoid(-torch.arange(distances.start, distances.stop, device=device))
        projected: Tensor = self.projection(F.dropout(sinusoid, self.position_dropout, self.training))
        return projected.view(len(distances), *self.shape).transpose(0, 1)

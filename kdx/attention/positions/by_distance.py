"""The base class of schemes that weigh a pair by its distance only: a bias for each head, the same for the batch."""

import torch
from torch import Tensor

from kdx.attention.distances import pair_distances, relative_positions, skew
from kdx.attention.interfaces import PositionScheme, TokenPositions


class ByDistance(PositionScheme):
    """A factor whose logarithm is a function of j - i."""

    def bias(self, distance: Tensor) -> Tensor:
        """Return the logarithm of the factor at distances from query to key, integers (…) to (H, …)."""
        raise NotImplementedError

    def log_weight(self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions) -> Tensor:
        distances = relative_positions(at_query, at_key)
        if distances is None:
            bias = self.bias(pair_distances(at_query, at_key))
            return bias if bias.dim() == 3 else bias.transpose(0, 1)
        each = self.bias(torch.arange(distances.start, distances.stop, device=query.device))
        return skew(each.unsqueeze(-2).expand(-1, at_query.positions.size(-1), -1).contiguous())

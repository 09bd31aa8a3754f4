"""What the schemes share that weigh a pair by its distance alone: a bias for each head, free of the batch."""

import torch
from torch import Tensor

from kdx.attention.contracts import Place, PositionScheme
from kdx.attention.distances import known, of_pairs


class ByDistance(PositionScheme):
    """A factor whose logarithm is a function of j - i."""

    def bias(self, distance: Tensor) -> Tensor:
        """The logarithm of the factor at distances from query to key, integers (…) to (H, …)."""
        raise NotImplementedError

    def log_weight(self, query: Tensor, at_query: Place, at_key: Place) -> Tensor:
        distances = known(at_query, at_key)
        if distances is None:
            bias = self.bias(of_pairs(at_query, at_key))
            return bias if bias.dim() == 3 else bias.transpose(0, 1)
        each = self.bias(torch.arange(distances.start, distances.stop, device=query.device))
        # A window of the keys, one distance further back with each query.
        return each.unfold(-1, at_key.positions.size(-1), 1).flip(-2)

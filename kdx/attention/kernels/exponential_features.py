"""The base class of kernels that are dot products of exponential features.

Exponents are large, so the largest exponent of each vector is factored out and kept as a logarithm, exactly, or left
out where it cancels.
"""

import torch
from torch import Tensor

from kdx.attention.interfaces import KernelFunction, Side, upcast


class ExponentialFeatures(KernelFunction):
    """⟨exp(e(q)), exp(e(k))⟩ for exponents e."""

    gives = "weight"

    def exponents(self, features: Tensor) -> Tensor:
        """Return e, (B, H, T, D) to (B, H, T, C), in at least 32 bits."""
        raise NotImplementedError

    def log_weight(self, query: Tensor, key: Tensor) -> Tensor:
        return _largest(self._exact(query)) + _largest(self._exact(key)).transpose(-2, -1)

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        return self._scaled(query) @ self._scaled(key).transpose(-2, -1)

    def feature_map(self, features: Tensor, side: Side) -> Tensor:
        exponents = self._exact(features)
        largest = _largest(exponents)
        if side is Side.KEY and largest.numel():
            # Only a factor common to all keys cancels. Keys with exponents about 80 below the largest are lost.
            largest = largest.amax(-2, keepdim=True)
        return (exponents - largest).exp()

    def _scaled(self, features: Tensor) -> Tensor:
        """Return the features of each vector divided by the largest."""
        exponents = self._exact(features)
        return (exponents - _largest(exponents)).exp()

    def _exact(self, features: Tensor) -> Tensor:
        # An exponent in half precision would be off by several per cent of the feature.
        with torch.autocast(features.device.type, enabled=False):
            return self.exponents(upcast(features))


def _largest(exponents: Tensor) -> Tensor:
    """Return the largest exponents, (B, H, T, 1), as constants, since they are multiplied back in later."""
    return exponents.detach().amax(-1, keepdim=True)

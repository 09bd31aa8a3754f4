"""Feature map elu + 1, the kernel of linear attention.

No epsilon is needed: φ is positive (in float32 0 below -17), and a row sum of 0 gives no values.
"""

import torch.nn.functional as F
from torch import Tensor

from kdx.attention.interfaces import KernelFunction, Side


class ELU(KernelFunction):
    """Dot product of the feature map elu + 1."""

    name = "elu"
    formula = "k(q, k) = ⟨φ(q), φ(k)⟩, φ(x) = elu(x) + 1"
    source = "Katharopoulos et al. 2020, Eq. 7"
    gives = "weight"
    positive_semi_definite = True

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        return self.feature_map(query, Side.QUERY) @ self.feature_map(key, Side.KEY).transpose(-2, -1)

    def feature_map(self, features: Tensor, side: Side) -> Tensor:
        return F.elu(features) + 1

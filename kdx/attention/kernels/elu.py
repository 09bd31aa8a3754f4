"""Feature map elu + 1, the kernel of linear attention.

k(q, k) = ⟨φ(q), φ(k)⟩,  φ(x) = elu(x) + 1          [Katharopoulos et al. 2020, Eq. 7]

No epsilon: φ is positive, and so is the row sum.
"""

import torch.nn.functional as F
from torch import Tensor

from kdx.attention.contracts import KernelFunction


class ELU(KernelFunction):
    """⟨elu(q) + 1, elu(k) + 1⟩."""

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        return (F.elu(query) + 1) @ (F.elu(key) + 1).transpose(-2, -1)

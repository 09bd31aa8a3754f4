"""Normalisation of the projected queries and keys, before positions act on them and any kernel compares them.

Without it, their lengths, and with them the spread of the log-weights, can grow without bound in training (Dehghani et
al. 2023).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.interfaces import upcast
from kdx.vocabulary import QKNorm

EPSILON = 1e-6


class L2Norm(nn.Module):
    """x ← √(g √D) · x / |x|, so that ⟨q, k⟩ / √D is g times the cosine (Henry et al. 2020).

    g = exp(log g) is positive and learned, and the same for queries and keys, so a symmetric kernel stays symmetric. It
    starts at √D, where the log-weights of the exponential kernel spread as they do for vectors of unit variance; Henry
    et al. start at log₂(L² - L) for texts of L tokens. A vector of zeros stays zero.
    """

    def __init__(self, head_width: int) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(head_width) / 2))

    def forward(self, projected: Tensor) -> Tensor:
        """(…, D) to (…, D)."""
        length = (self.log_scale / 2).exp() * projected.size(-1) ** 0.25
        return (length * F.normalize(upcast(projected), dim=-1)).to(projected.dtype)


def norms_of(word: QKNorm, head_width: int, symmetric: bool) -> tuple[nn.Module | None, nn.Module | None]:
    """Return the normalisation of queries, and that of keys; None if the first serves both, or if there is none.

    rms: x ← gain ⊙ x / √(mean of x² + ε), a gain of width D for all heads (Zhang & Sennrich 2019; Dehghani et al. 2023
    use layer normalisation there), one for queries and one for keys unless the attention is symmetric.
    """
    if word is QKNorm.NONE:
        return None, None
    if word is QKNorm.L2:
        return L2Norm(head_width), None
    return nn.RMSNorm(head_width, EPSILON), None if symmetric else nn.RMSNorm(head_width, EPSILON)

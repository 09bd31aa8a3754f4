"""Reflections along the path: each token between key and query turns the key by what the token is.

H_l = I - β_l w_l w_lᵀ is between the identity and a reflection: w_l has length 1 and is a projection of rank 32, and
β_l = 2σ(b_h x_l + c_h). Yang et al. smooth w by a convolution over three tokens, which is left out here. With the
exponential kernel at T = 1 the logarithm of the weight is ⟨q, H_i … H_j+1 k⟩ / √D; others have the same factor.

The product is I - Wᵀ M W with the rows w_j+1 … w_i, M = (I + L)⁻¹ diag(β) and L the part of diag(β) W Wᵀ below its
diagonal (Bischof & Van Loan 1987). M of a part of the rows is a part of M, so one triangular system serves all pairs;
it takes T × T numbers a head. Padding turns nothing; keys that only a filter or a mask hides do.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.interfaces import Part, Settings, TokenPositions, index_select, upcast
from kdx.attention.positions.blockwise import Blockwise

RANK = 32


class Path(Blockwise):
    """A product of reflections by the tokens between key and query."""

    name = "path"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(⟨q, (H_i … H_j+1 - I) k⟩ / √D), H_l = I - β_l w_l w_lᵀ"
    source = "Yang et al. 2025"
    spaces = ("sequence", "multimodal")
    past_only = True
    looks_at_tokens = True
    reads = "reflection"

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.shape = settings.heads, settings.widened * settings.head_width
        self.narrow = nn.Linear(settings.width, RANK, bias=False)
        self.direction = nn.Linear(RANK, math.prod(self.shape), bias=False)
        self.strength = nn.Linear(settings.width, settings.heads)
        for linear in (self.narrow, self.direction, self.strength):
            nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(self.strength.bias)

    def of_tokens(self, features: Tensor) -> Tensor:
        direction = upcast(self.direction(self.narrow(features)))
        direction = direction.view(*direction.shape[:-1], *self.shape).transpose(1, 2)
        strength = 2 * upcast(self.strength(features)).sigmoid().transpose(1, 2).unsqueeze(-1)
        return torch.cat([F.normalize(direction, dim=-1), strength], -1)

    def blockwise(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor]:
        # Autocast would round the products, and a triangular system has no half precision.
        with torch.autocast(query.device.type, enabled=False):
            return self._exactly(query, at_query, at_key)

    def _exactly(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor]:
        queries, keys = at_query.tokens, at_key.tokens
        direction, strength = keys.read[self.reads][..., :-1], keys.read[self.reads][..., -1:]
        if keys.padding is not None:
            strength = strength.masked_fill(keys.padding[:, None, :, None], 0.0)
        compared, key = upcast(queries.compared), upcast(keys.compared)
        below = (strength * direction @ direction.transpose(-2, -1)).tril(-1)
        turned = (strength * (direction @ key.transpose(-2, -1))).tril(-1)  # row l, column j: of keys before l
        turned = torch.linalg.solve_triangular(below, turned, upper=False, unitriangular=True)
        index = torch.arange(key.size(-2), device=query.device)

        def log_weight(query: Tensor, query_part: slice, key_part: Part) -> Tensor:
            with torch.autocast(query.device.type, enabled=False):
                products = index_select(compared, query_part) @ direction.transpose(-2, -1)
                products = products.masked_fill(index >= queries.rank[:, None, query_part, None], 0.0)
                of_keys = index_select(turned.transpose(-2, -1), key_part).transpose(-2, -1)
                return -(products @ of_keys) / math.sqrt(compared.size(-1))

        return log_weight

"""Additive positions along the path: each token between key and query adds what the query makes of it.

p are P = 8 features of a token, p̂ the same with a mean square of 1, and R_l turns each pair of features by l radians,
so the sum depends on absolute positions, as in the code of Zhang et al.; m_h are the rates of `alibi`. If p is 0 every
token adds -m_h log 2, which is `alibi` at this rate; tokens that add the same for every query, as in `forgetting`, are
the other end. Padding adds nothing; keys that only a filter or a mask hides do.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kdx.attention.encodings.sinusoidal import Sinusoidal
from kdx.attention.interfaces import Part, Settings, TokenPositions, index_select, upcast
from kdx.attention.positions.alibi import ALiBi
from kdx.attention.positions.blockwise import Blockwise
from kdx.attention.running_sum import running_sum

WIDTH = 8


class GrapeAdditive(Blockwise):
    """A weight that falls by what the query makes of each token on the way to the key."""

    name = "grape-additive"
    formula = "k(x_q, x_k) = k_F(f_q, f_k) · exp(m_h Σ_l log σ(⟨p_i, R_l p̂_l⟩ / P)), p = W_p x, l = j + 1 … i"
    source = "Zhang et al. 2025"
    spaces = ("sequence", "multimodal")
    past_only = True
    looks_at_tokens = True
    reads = "grape"
    absolute = True

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.heads = settings.heads
        self.rates = ALiBi(settings)
        self.potential = nn.Linear(settings.width, settings.heads * WIDTH, bias=False)
        nn.init.xavier_uniform_(self.potential.weight)
        self.sinusoid = Sinusoidal(2, max_positions=1)  # one radian a token

    def of_tokens(self, features: Tensor) -> Tensor:
        potential: Tensor = self.potential(features)
        return potential.view(*potential.shape[:-1], self.heads, WIDTH).transpose(1, 2)

    def steps(self, of_query: Tensor, of_key: Tensor, at_key: TokenPositions) -> Tensor:
        """Return what each token adds for each query: (B, H, Tq, P) and (B, H, Tk, P) to (B, H, Tq, Tk)."""
        first, second = F.rms_norm(upcast(of_key), (WIDTH,), eps=1e-6).chunk(2, -1)
        sine, cosine = upcast(self.sinusoid(at_key.positions)).unsqueeze(-3).chunk(2, -1)
        turned = torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)
        return self.rates.slopes[:, None, None] * F.logsigmoid(upcast(of_query) @ turned.transpose(-2, -1) / WIDTH)

    def blockwise(
        self, query: Tensor, at_query: TokenPositions, at_key: TokenPositions
    ) -> Callable[[Tensor, slice, Part], Tensor]:
        queries, keys = at_query.tokens, at_key.tokens
        of_query, of_key = queries.read[self.reads], keys.read[self.reads]
        index = torch.arange(of_key.size(-2), device=query.device)

        def log_weight(query: Tensor, query_part: slice, key_part: Part) -> Tensor:
            on_the_way = index < queries.rank[:, None, query_part, None]
            if keys.padding is not None:
                on_the_way = on_the_way & ~keys.padding[:, None, None, :]
            steps = self.steps(index_select(of_query, query_part), of_key, at_key)
            steps = F.pad(steps.masked_fill(~on_the_way, 0.0)[..., 1:], (0, 1))
            # From the query back, since the sum is small where the weight is large.
            return index_select(running_sum(steps.flip(-1), -1).flip(-1).transpose(-2, -1), key_part).transpose(-2, -1)

        return log_weight

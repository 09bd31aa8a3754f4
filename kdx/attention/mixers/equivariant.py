"""The permutation-equivariant linear layer: a map of each token plus a map of the mean of all.

The mean is over the visible tokens: all that are not padding or, with a causal filter, those of them up to the token.
Then it is a running mean and no longer blind to the order.
"""

import torch
from torch import Tensor, nn

from kdx.attention.cache import Cache, Keys
from kdx.attention.interfaces import ContextMixer, upcast
from kdx.attention.running_sum import running_sum


class Equivariant(ContextMixer):
    """X W_1 + (1/s) 1 1ᵀ X W_2.

    Args:
        width: M
        filter: `full` or `causal`.

    Raises:
        ValueError: for another filter.
    """

    name = "equivariant"
    formula = "X ← X W_1 + (1/s) 1 1ᵀ X W_2"
    source = "Zaheer et al. 2017, with the mean in place of the sum"

    def __init__(self, width: int, *, filter: str = "full") -> None:
        super().__init__()
        if filter not in ("full", "causal"):
            raise ValueError(f"filter: {filter!r}; allowed for a mean: full, causal")
        self.causal = filter == "causal"
        self.own = nn.Linear(width, width, bias=False)
        self.others = nn.Linear(width, width, bias=False)
        for linear in (self.own, self.others):
            nn.init.xavier_uniform_(linear.weight)

    def forward(
        self,
        x: Tensor,
        *,
        query_positions: Tensor | None = None,
        key_padding: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        # Padding is not counted. A cache keeps the sum and the number of tokens so far.
        if cache is not None and not self.causal:
            raise ValueError("cache: given to a layer that also looks ahead; allowed: with filter causal")
        # A long running sum loses digits in a short number format.
        terms = upcast(x)
        count = torch.ones_like(terms[..., :1])  # (B, T, 1)
        if key_padding is not None:
            hidden = key_padding.unsqueeze(-1)
            terms, count = terms.masked_fill(hidden, 0.0), count.masked_fill(hidden, 0.0)
        if self.causal:
            terms, count = running_sum(terms, 1), running_sum(count, 1)
        else:
            terms, count = terms.sum(1, keepdim=True), count.sum(1, keepdim=True)
        if cache is not None:
            if cache.keys is not None:
                terms, count = terms + cache.keys.value[:, 0], count + cache.keys.key[:, 0]
            at_end = torch.zeros(1, dtype=torch.long, device=x.device)
            cache.keys = Keys(count[:, None, -1:], terms[:, None, -1:], at_end, None)
        mean = terms / count.clamp(min=1.0)
        return self.own(x) + self.others(mean.to(x.dtype))

    def extra_repr(self) -> str:
        return f"causal={self.causal}"

"""The number of keys that the query sees, so that weights need not sum to one (Wortsman et al. 2023)."""

from torch import Tensor

from kdx.attention.interfaces import NormaliserFunction


class Length(NormaliserFunction):
    """The number of keys that the query sees."""

    name = "length"
    formula = "|M(x_q, S)|"
    source = "Wortsman et al. 2023"
    cancels = False

    def total(self, weight: Tensor, visible: Tensor | None) -> Tensor:
        if visible is None:
            return weight.new_full((1, 1), weight.size(-1))
        # A mask may be one column for all keys.
        seen = visible.expand(*visible.shape[:-1], weight.size(-1))
        return seen.sum(-1, keepdim=True).clamp(min=1).to(weight.dtype)

"""Definition 1 (Eq. 2): each query's average of the visible values, weighted by the kernel over its row sum.

A query that sees no key at all (a row that is padding from end to end) gets weights and output of zero, on both paths.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from kdx.attention.contracts import DotProduct


def weights(log_weight: Tensor, visible: Tensor | None = None, sign: Tensor | None = None) -> Tensor:
    """k(x_q, x_k) over its raw row sum, with weight 0 where a key is not visible.

    No epsilon: the largest weight of a row is scaled to 1, which Eq. 2 does not see. At least 32 bits are used.

    Args:
        log_weight: (B, H, Tq, Tk)
        visible: True where a key is seen; broadcasts to (B, H, Tq, Tk). None: everywhere.
        sign: of the weight, (B, H, Tq, Tk). None: never negative.

    Returns:
        (B, H, Tq, Tk)
    """
    log_weight = log_weight.to(torch.promote_types(log_weight.dtype, torch.float32))
    if visible is not None:
        log_weight = log_weight.masked_fill(~visible, -torch.inf)
    # Finite even where all is hidden, so that -inf - largest is never NaN.
    largest = log_weight.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(log_weight.dtype).min)
    weight = (log_weight - largest).exp()
    if sign is not None:
        weight = weight * sign
    total = weight.sum(-1, keepdim=True)
    if visible is not None:
        total = total.masked_fill(~visible.any(-1, keepdim=True), 1.0)
    return weight / total


def literal(
    log_weight: Tensor,
    value: Tensor,
    *,
    visible: Tensor | None = None,
    sign: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Eq. 2 as printed.

    Args:
        log_weight, visible, sign: as in `weights`.
        value: (B, H, Tk, D)
        dropout: probability of dropping a weight.

    Returns:
        (B, H, Tq, D)
    """
    return F.dropout(weights(log_weight, visible, sign), dropout).to(value.dtype) @ value


def fused(
    dot_products: Sequence[DotProduct],
    value: Tensor,
    *,
    bias: Tensor | None = None,
    visible: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Eq. 2 in one scaled-dot-product-attention call.

    The log-weight is the sum of the dot products over √D, as one dot product of concatenated columns, and the bias.

    Args:
        dot_products: pairs (…, H, Tq, C) and (…, H, Tk, C) that broadcast over the batch.
        value: (B, H, Tk, D)
        bias: additive log-weight, (H, Tq, Tk) or (B, H, Tq, Tk).
        visible: as in `weights`.
        causal: the keys seen are the lower triangle; excludes `bias` and `visible`.
        dropout: probability of dropping a weight.

    Returns:
        (B, H, Tq, D)
    """
    width = value.size(-1)
    query, key = dot_products[0]
    if len(dot_products) > 1:
        batch = value.shape[:2]
        query = torch.cat([q.expand(*batch, -1, -1) for q, _ in dot_products], -1)
        key = torch.cat([k.expand(*batch, -1, -1) for _, k in dot_products], -1)
    mask = visible
    if bias is not None:
        mask = bias.unsqueeze(0) if bias.dim() == 3 else bias
        if visible is not None:
            # Added, not filled in: the gradient of a fill is as large as the batch (1.1 to 1.4 times the time).
            hidden = torch.zeros_like(visible, dtype=bias.dtype).masked_fill(~visible, -torch.inf)
            mask = mask + hidden
    extra = query.size(-1) - width
    if extra:
        # With values of another width torch leaves its flash kernel (1.1 to 1.5 times the time, and T × T memory).
        value = F.pad(value, (0, extra))
    output = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=width**-0.5
    )
    return output[..., :width]

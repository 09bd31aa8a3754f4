"""Definition 1 (Eq. 2): each query's average of the visible values, weighted by the kernel over its row sum.

A query that sees no key at all (a row that is padding from end to end), or only keys of weight 0, gets weights and
output of zero, on all paths. No epsilon anywhere. Rows are summed in at least 32 bits.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from kdx.attention.interfaces import DotProduct, NormaliserFunction, upcast


def weights(
    log_weight: Tensor | None,
    weight: Tensor | None,
    normaliser: NormaliserFunction,
    visible: Tensor | None = None,
) -> Tensor:
    """w(x_q, x_k) = weight · exp(log_weight) over what the normaliser says, and 0 where a key is not visible.

    Args:
        log_weight: (B, H, Tq, Tk); None: 0.
        weight: (B, H, Tq, Tk), of any sign; None: 1.
        normaliser: what to divide by.
        visible: True where a key is seen; broadcasts to (B, H, Tq, Tk). None: everywhere.

    Returns:
        (B, H, Tq, Tk)
    """
    raw = _raw(log_weight, weight, normaliser, visible)
    return raw / normaliser.total(raw, visible)


def literal(
    log_weight: Tensor | None,
    weight: Tensor | None,
    normaliser: NormaliserFunction,
    value: Tensor,
    *,
    visible: Tensor | None = None,
    of_pairs: Callable[[Tensor], Tensor] | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Eq. 2 as printed.

    Args:
        log_weight, weight, normaliser, visible: as in `weights`.
        value: (B, H, Tk, D)
        of_pairs: what weights (B, H, Tq, Tk) sum up beside the values, (B, H, Tq, D).
        dropout: probability of dropping a weight.

    Returns:
        (B, H, Tq, D)
    """
    kept = F.dropout(weights(log_weight, weight, normaliser, visible), dropout).to(value.dtype)
    return kept @ value if of_pairs is None else kept @ value + of_pairs(kept)


def quick(
    log_weight: Tensor | None,
    weight: Tensor | None,
    normaliser: NormaliserFunction,
    value: Tensor,
    *,
    visible: Tensor | None = None,
    of_pairs: Callable[[Tensor], Tensor] | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """`literal` with fewer passes over the pairs: it divides the sum, not each weight, or takes torch's softmax."""
    total = None
    if weight is None and normaliser.cancels:
        assert log_weight is not None
        log_weight = upcast(log_weight)
        if visible is not None:
            # Added, not filled in, which costs a copy, and another for the gradient. Finite, so that a row without any
            # key is not NaN; what it gives is taken away below.
            hidden = torch.zeros_like(visible, dtype=log_weight.dtype)
            log_weight = log_weight + hidden.masked_fill_(~visible, torch.finfo(log_weight.dtype).min / 2)
        kept = log_weight.softmax(-1)
    else:
        kept = _raw(log_weight, weight, normaliser, visible)
        total = normaliser.total(kept, visible)
        if torch.is_autocast_enabled(value.device.type):
            # Which would make the products below narrow, so the weights are made small before.
            kept, total = kept / total, None
    # The sum of many raw weights has no bound: before it is divided, it stays wide.
    kept = F.dropout(kept, dropout).to(value.dtype if total is None else kept.dtype)
    output = kept @ value.to(kept.dtype)
    if of_pairs is not None:
        output = output + of_pairs(kept)
    if total is not None:
        return (output / total).to(value.dtype)
    return output if visible is None else output.masked_fill(~visible.any(-1, keepdim=True), 0.0)


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


def linear_attention(query: Tensor, key: Tensor, value: Tensor, *, causal: bool, chunk: int = 64) -> Tensor:
    """Eq. 2 for a kernel that is a dot product of features: (Σ_k φ(k) v)ᵀ φ(q) over (Σ_k φ(k))ᵀ φ(q).

    Under a causal filter what lies before a chunk of the tokens is such a sum, and only pairs within the chunk are gone
    through [Katharopoulos et al. 2020, Sec. 3.2; Hua et al. 2022, Sec. 3.2].

    Args:
        query, key: φ of them, (B, H, Tq, C) and (B, H, Tk, C); zeros for a key that must not be seen.
        value: (B, H, Tk, D)
        causal: the keys seen are the lower triangle; Tq = Tk.
        chunk: tokens; 64 was the quickest of 16 to 256, at 256 to 4096 tokens with 64 features.

    Returns:
        (B, H, Tq, D)
    """
    with torch.autocast(value.device.type, enabled=False):
        # Sums over all keys, of which half precision has not the digits. The last column is the row sum.
        query, key = upcast(query), upcast(key)
        summed = F.pad(upcast(value), (0, 1), value=1.0)
        if not causal:
            sums = query @ (key.transpose(-2, -1) @ summed)
        else:
            tokens = query.size(2)
            query, key, summed = (
                F.pad(rows, (0, 0, 0, -tokens % chunk)).reshape(*rows.shape[:2], -1, chunk, rows.size(-1))
                for rows in (query, key, summed)
            )
            within = (query @ key.transpose(-2, -1)).tril() @ summed
            until = (key.transpose(-2, -1) @ summed).cumsum(2)
            before = F.pad(until[:, :, :-1], (0, 0, 0, 0, 1, 0))
            sums = (within + query @ before).flatten(2, 3)[:, :, :tokens]
        total = sums[..., -1:]
        return (sums[..., :-1] / total.masked_fill(total == 0, 1.0)).to(value.dtype)


def in_blocks(
    block: Callable[[slice], Tensor], queries: int, size: int, *, again: bool = True, random: bool = False
) -> Tensor:
    """(B, H, Tq, D) from (B, H, size, D) at a time.

    Args:
        block: the output for a slice of the queries.
        queries: Tq.
        size: queries in a block.
        again: whether backward computes each block again, so that what it needs of the pairs is never kept.
        random: whether a block draws random numbers, which are then to be drawn again.
    """
    slices = [slice(first, min(first + size, queries)) for first in range(0, queries, size)]
    if not again or len(slices) == 1 or not torch.is_grad_enabled():
        return torch.cat([block(some) for some in slices], 2)
    # The last first: under a causal filter it is the largest, and leaves holes in the heap into which all others fit.
    blocks = [checkpoint(block, some, use_reentrant=False, preserve_rng_state=random) for some in reversed(slices)]
    return torch.cat(blocks[::-1], 2)


def _raw(
    log_weight: Tensor | None, weight: Tensor | None, normaliser: NormaliserFunction, visible: Tensor | None
) -> Tensor:
    if log_weight is None:
        assert weight is not None
        return upcast(weight) if visible is None else upcast(weight).masked_fill(~visible, 0.0)
    log_weight = upcast(log_weight)
    if visible is not None:
        log_weight = log_weight.masked_fill(~visible, -torch.inf)
    if normaliser.cancels:
        # The largest of a row is scaled to 1, whatever its size. Finite even where all is hidden: -inf - largest is
        # never NaN.
        largest = log_weight.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(log_weight.dtype).min)
        log_weight = log_weight - largest
    raw = log_weight.exp()
    return raw if weight is None else raw * weight

"""Definition 1 (Eq. 2): each query's average of the visible values, weighted by the kernel over its row sum.

A query that sees no key at all (a row that is padding from end to end), or only keys of weight 0, gets weights and
output of zero, on all paths. No epsilon anywhere. Rows are summed in at least 32 bits.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
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
        normaliser: what to divide by, or what else makes weights of the row.
        visible: True where a key is seen; broadcasts to (B, H, Tq, Tk). None: everywhere.

    Returns:
        (B, H, Tq, Tk)
    """
    if not normaliser.divides:
        return normaliser.weights(log_weight, weight, visible)
    raw, total = _raw(log_weight, weight, normaliser, visible)
    return raw / total


def literal(
    log_weight: Tensor | None,
    weight: Tensor | None,
    normaliser: NormaliserFunction,
    value: Tensor,
    *,
    visible: Tensor | None = None,
    pair_values: Callable[[Tensor], Tensor] | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Eq. 2 as printed.

    Args:
        log_weight, weight, normaliser, visible: as in `weights`.
        value: (B, H, Tk, D)
        pair_values: what weights (B, H, Tq, Tk) sum up beside the values, (B, H, Tq, D).
        dropout: probability of dropping a weight.

    Returns:
        (B, H, Tq, D)
    """
    kept = F.dropout(weights(log_weight, weight, normaliser, visible), dropout).to(value.dtype)
    return kept @ value if pair_values is None else kept @ value + pair_values(kept)


def quick(
    log_weight: Tensor | None,
    weight: Tensor | None,
    normaliser: NormaliserFunction,
    value: Tensor,
    *,
    visible: Tensor | None = None,
    pair_values: Callable[[Tensor], Tensor] | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """`literal` with less work: it divides the smaller of sum and weights, or takes torch's softmax."""
    total = unseeing = None
    if not normaliser.divides:
        kept = normaliser.weights(log_weight, weight, visible)
    elif weight is None and normaliser.is_row_sum:
        assert log_weight is not None
        log_weight = upcast(log_weight)
        if visible is not None:
            # Added, not filled in, which costs a copy, and another for the gradient. Finite, so that a row without any
            # key is not NaN; what it gives is taken away below.
            hidden = torch.zeros_like(visible, dtype=log_weight.dtype)
            log_weight = log_weight + hidden.masked_fill_(~visible, torch.finfo(log_weight.dtype).min / 2)
            unseeing = ~visible.any(-1, keepdim=True)
        kept = log_weight.softmax(-1)
    else:
        kept, total = _raw(log_weight, weight, normaliser, visible)
        # Autocast would make the products below narrow, so the weights are made small before.
        if kept.size(-1) <= value.size(-1) or torch.is_autocast_enabled(value.device.type):
            kept, total = kept / total, None
    # The sum of many raw weights has no bound: before it is divided, it stays wide.
    kept = F.dropout(kept, dropout).to(value.dtype if total is None else kept.dtype)
    output = kept @ value.to(kept.dtype)
    if pair_values is not None:
        output = output + pair_values(kept)
    if total is not None:
        output = (output / total).to(value.dtype)
    return output if unseeing is None else output.masked_fill(unseeing, 0.0)


def fused(
    dot_products: Sequence[DotProduct],
    value: Tensor,
    *,
    bias: Tensor | None = None,
    visible: Tensor | None = None,
    causal: bool = False,
    width: int | None = None,
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
        width: D of the √D; that of the values unless given.
        dropout: probability of dropping a weight.

    Returns:
        (B, H, Tq, D)
    """
    values = value.size(-1)
    width = values if width is None else width
    query, key = _side_by_side(dot_products, value)
    mask = visible
    if bias is not None:
        mask = bias.unsqueeze(0) if bias.dim() == 3 else bias
        if visible is not None:
            # Added, not filled in: the gradient of a fill is as large as the batch (1.1 to 1.4 times the time).
            hidden = torch.zeros_like(visible, dtype=bias.dtype).masked_fill(~visible, -torch.inf)
            mask = mask + hidden
    extra = query.size(-1) - values
    # With values of another width torch leaves its flash kernel (1.1 to 1.5 times the time, and T × T memory).
    if extra > 0:
        value = F.pad(value, (0, extra))
    elif extra:
        query, key = F.pad(query, (0, -extra)), F.pad(key, (0, -extra))
    # A CPU has no cuDNN, and need not wait for a choice without it.
    with nullcontext() if mask is None or value.device.type == "cpu" else sdpa_kernel(_all_but_cudnn()):
        output = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=width**-0.5
        )
    return output[..., :values]


def _all_but_cudnn() -> list[SDPBackend]:
    """The kernels that are allowed now, without cuDNN's.

    With a mask its backward gives NaN for the queries in half precision where a row's log sum is below -88.7
    (https://github.com/pytorch/pytorch/issues/196678), to which the squared norms of rbf come.
    """
    allowed: dict[SDPBackend, Callable[[], bool]] = {
        SDPBackend.FLASH_ATTENTION: torch.backends.cuda.flash_sdp_enabled,
        SDPBackend.EFFICIENT_ATTENTION: torch.backends.cuda.mem_efficient_sdp_enabled,
        SDPBackend.MATH: torch.backends.cuda.math_sdp_enabled,
    }
    # The last is that of devices which bring a kernel of their own.
    return [*(backend for backend, is_allowed in allowed.items() if is_allowed()), SDPBackend.OVERRIDEABLE]


def _side_by_side(dot_products: Sequence[DotProduct], value: Tensor) -> DotProduct:
    """One dot product that is the sum of all: (B, H, Tq, C) and (B, H, Tk, C)."""
    if len(dot_products) == 1:
        return dot_products[0]
    batch = value.shape[:2]
    query = torch.cat([q.expand(*batch, -1, -1) for q, _ in dot_products], -1)
    return query, torch.cat([k.expand(*batch, -1, -1) for _, k in dot_products], -1)


def in_blocks(
    block: Callable[[slice], Tensor], slices: Sequence[slice], *, again: bool = True, random: bool = False
) -> Tensor:
    """(B, H, Tq, D) from (B, H, size, D) at a time.

    Args:
        block: the output for a slice of the queries.
        slices: all queries, in order.
        again: whether backward computes each block again, so that what it needs of the pairs is never kept.
        random: whether a block draws random numbers, which are then to be drawn again.
    """
    if len(slices) == 1:
        return block(slices[0])
    if not again or not torch.is_grad_enabled():
        return torch.cat([block(some) for some in slices], 2)
    # The last first: under a causal filter it is the largest, and leaves holes in the heap into which all others fit.
    blocks = [checkpoint(block, some, use_reentrant=False, preserve_rng_state=random) for some in reversed(slices)]
    return torch.cat(blocks[::-1], 2)


def _raw(
    log_weight: Tensor | None, weight: Tensor | None, normaliser: NormaliserFunction, visible: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The kernel's weights of the keys that are visible, and what they are divided by."""
    sink = normaliser.sink()
    sink = sink if sink is None else upcast(sink)
    if log_weight is None:
        assert weight is not None
        raw = upcast(weight) if visible is None else upcast(weight).masked_fill(~visible, 0.0)
        return raw, _total(raw, normaliser, visible, sink)
    log_weight = upcast(log_weight)
    if visible is not None:
        log_weight = log_weight.masked_fill(~visible, -torch.inf)
    if normaliser.cancels:
        # The largest of a row is scaled to 1, whatever its size. Finite even where all is hidden: -inf - largest is
        # never NaN.
        largest = log_weight.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(log_weight.dtype).min)
        if sink is not None:
            largest = torch.maximum(largest, sink.detach())
            sink = sink - largest
        log_weight = log_weight - largest
    raw = log_weight.exp()
    raw = raw if weight is None else raw * weight
    return raw, _total(raw, normaliser, visible, sink)


def _total(raw: Tensor, normaliser: NormaliserFunction, visible: Tensor | None, sink: Tensor | None) -> Tensor:
    total = normaliser.total(raw, visible)
    return total if sink is None else total + sink.exp()

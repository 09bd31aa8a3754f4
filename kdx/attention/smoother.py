"""Definition 1 (Eq. 2): each query's average of the visible values, weighted by the kernel over its row sum.

A query that sees no key at all (a row that is all padding), or only keys of weight 0, gets weights and output of zero,
on all paths. There is no epsilon. Rows are summed in at least 32 bits.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from kdx.attention.interfaces import DotProduct, NormaliserFunction, upcast

Queries = TypeVar("Queries")


def weights(
    log_weight: Tensor | None,
    weight: Tensor | None,
    normaliser: NormaliserFunction,
    visible: Tensor | None = None,
) -> Tensor:
    """Return w(x_q, x_k) = weight · exp(log_weight), normalised, and 0 where a key is not visible.

    Args:
        log_weight: (B, H, Tq, Tk); None for 0.
        weight: (B, H, Tq, Tk), of any sign; None for 1.
        normaliser: gives the divisor, or turns the row into weights in another way.
        visible: True where a key is seen; broadcasts to (B, H, Tq, Tk). None if all are seen.

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
    fit: Callable[[Tensor], Tensor] | None = None,
    visible: Tensor | None = None,
    pair_values: Callable[[Tensor], Tensor] | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Return Eq. 2 as printed.

    Args:
        log_weight, weight, normaliser, visible: as in `weights`.
        value: (B, H, Tk, D)
        fit: maps normalised weights (B, H, Tq, Tk) to those of another estimator, see `kdx.attention.local_linear`.
        pair_values: maps weights (B, H, Tq, Tk) to a weighted sum in addition to that of the values, (B, H, Tq, D).
        dropout: probability of dropping a weight.

    Returns:
        (B, H, Tq, D)
    """
    kept = weights(log_weight, weight, normaliser, visible)
    kept = F.dropout(kept if fit is None else fit(kept), dropout).to(value.dtype)
    return kept @ value if pair_values is None else kept @ value + pair_values(kept)


def quick(
    log_weight: Tensor | None,
    weight: Tensor | None,
    normaliser: NormaliserFunction,
    value: Tensor,
    *,
    fit: Callable[[Tensor], Tensor] | None = None,
    visible: Tensor | None = None,
    pair_values: Callable[[Tensor], Tensor] | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Return the same as `literal` with less work: divide the smaller of sum and weights, or use torch's softmax."""
    total = unseeing = None
    if not normaliser.divides:
        kept = normaliser.weights(log_weight, weight, visible)
    elif weight is None and normaliser.is_row_sum:
        assert log_weight is not None
        log_weight = upcast(log_weight)
        if visible is not None:
            # Added, since filling costs a copy and another one for the gradient. Finite, so that a row without any key
            # is not NaN; its result is set to 0 below.
            hidden = torch.zeros_like(visible, dtype=log_weight.dtype)
            log_weight = log_weight + hidden.masked_fill_(~visible, torch.finfo(log_weight.dtype).min / 2)
            unseeing = ~visible.any(-1, keepdim=True)
        kept = log_weight.softmax(-1)
    else:
        kept, total = _raw(log_weight, weight, normaliser, visible)
        # Autocast would round the products below, so the weights are normalised before.
        if fit is not None or kept.size(-1) <= value.size(-1) or torch.is_autocast_enabled(value.device.type):
            kept, total = kept / total, None
    kept = kept if fit is None else fit(kept)
    # The sum of many raw weights has no bound, so it keeps at least 32 bits until it is divided.
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
    """Return Eq. 2, computed by one scaled-dot-product-attention call.

    The log-weight is the sum of the dot products over √D, as one dot product of concatenated columns, plus the bias.

    Args:
        dot_products: pairs (…, H, Tq, C) and (…, H, Tk, C) that broadcast over the batch.
        value: (B, H, Tk, D)
        bias: additive log-weight, (H, Tq, Tk) or (B, H, Tq, Tk).
        visible: as in `weights`.
        causal: whether the visible keys are the lower triangle; excludes `bias` and `visible`.
        width: D in √D; default: the width of the values.
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
            # Added, since the gradient of a fill is as large as the batch (1.1 to 1.4 times the time).
            hidden = torch.zeros_like(visible, dtype=bias.dtype).masked_fill(~visible, -torch.inf)
            mask = mask + hidden
    extra = query.size(-1) - values
    # With values of another width torch does not use its flash kernel (1.1 to 1.5 times the time, and T × T memory).
    if extra > 0:
        value = F.pad(value, (0, extra))
    elif extra:
        query, key = F.pad(query, (0, -extra)), F.pad(key, (0, -extra))
    # A CPU has no cuDNN, so selecting kernels there would only cost time.
    with nullcontext() if mask is None or value.device.type == "cpu" else sdpa_kernel(_all_but_cudnn()):
        output = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=width**-0.5
        )
    return output[..., :values]


def _all_but_cudnn() -> list[SDPBackend]:
    """Return the kernels that are allowed now, without cuDNN's.

    With a mask, cuDNN's backward gives NaN for the queries in half precision if a row's log sum is below -88.7
    (https://github.com/pytorch/pytorch/issues/196678), which the squared norms of rbf reach.
    """
    allowed: dict[SDPBackend, Callable[[], bool]] = {
        SDPBackend.FLASH_ATTENTION: torch.backends.cuda.flash_sdp_enabled,
        SDPBackend.EFFICIENT_ATTENTION: torch.backends.cuda.mem_efficient_sdp_enabled,
        SDPBackend.MATH: torch.backends.cuda.math_sdp_enabled,
    }
    # The last one is for devices that bring their own kernel.
    return [*(backend for backend, is_allowed in allowed.items() if is_allowed()), SDPBackend.OVERRIDEABLE]


def _side_by_side(dot_products: Sequence[DotProduct], value: Tensor) -> DotProduct:
    """Return one dot product that is the sum of all: (B, H, Tq, C) and (B, H, Tk, C)."""
    if len(dot_products) == 1:
        return dot_products[0]
    batch = value.shape[:2]
    query = torch.cat([q.expand(*batch, -1, -1) for q, _ in dot_products], -1)
    return query, torch.cat([k.expand(*batch, -1, -1) for _, k in dot_products], -1)


def in_blocks(
    block: Callable[[Queries], Tensor], parts: Sequence[Queries], *, again: bool = True, random: bool = False
) -> Tensor:
    """Return the output (B, H, Tq, D), computed in blocks (B, H, size, D).

    Args:
        block: returns the output for some of the queries.
        parts: what `block` takes for each part of the queries, in order.
        again: whether backward computes each block again, so that no pairs are kept.
        random: whether a block draws random numbers, which then must be drawn again.
    """
    if len(parts) == 1:
        return block(parts[0])
    if not again or not torch.is_grad_enabled():
        return torch.cat([block(part) for part in parts], 2)
    # The last block first: under a causal filter it is the largest, so the memory that it frees fits all others.
    blocks = [checkpoint(block, part, use_reentrant=False, preserve_rng_state=random) for part in reversed(parts)]
    return torch.cat(blocks[::-1], 2)


def _raw(
    log_weight: Tensor | None, weight: Tensor | None, normaliser: NormaliserFunction, visible: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the kernel's weights of the visible keys, and their divisor."""
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
        # The largest weight of a row is scaled to 1. `largest` is finite even if all keys are hidden, so -inf - largest
        # is never NaN.
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

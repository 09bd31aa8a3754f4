"""torch's flex_attention: biases by distance, and sparse filters, without a bias or a mask of all pairs.

A compiler makes one kernel of the products, the bias and the filter, and leaves out blocks in which the filter hides
all pairs [Dong et al. 2024]. The gradient of a bias is added up in whatever order the blocks come, so that exact
arithmetic never takes it. On a CPU torch has no gradient of it.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

from kdx.attention.interfaces import DotProduct

DEVICE = "cuda"
# Tokens of a block of the mask. Other lengths than its multiples gave NaN in the gradient
# (https://github.com/pytorch/pytorch/issues/153799).
BLOCK = 128
# Features and number formats for which torch 2.13 has kernels of a reasonable size: in float32 the gradient is made of
# tiles of 16 × 16 (torch/_inductor/template_heuristics/triton.py).
NARROWEST, WIDEST = 16, 256
FORMATS: tuple[torch.dtype, ...] = (torch.bfloat16, torch.float16)


def available(value: Tensor) -> bool:
    """Whether it is to be had: in what is compiled, on a GPU, in a format of `FORMATS`."""
    if value.device.type != DEVICE or not torch.compiler.is_compiling() or torch.are_deterministic_algorithms_enabled():
        return False
    return _format(value) in FORMATS


def fits(dot_product: DotProduct, value: Tensor) -> bool:
    """Whether it is one of rows of such lengths and widths, all (…, T, C)."""
    lengths = [rows.size(-2) for rows in dot_product]
    widths = dot_product[0].size(-1), value.size(-1)
    return all(length % BLOCK == 0 for length in lengths) and all(NARROWEST <= width <= WIDEST for width in widths)


def fused_by_pair(
    dot_product: DotProduct,
    value: Tensor,
    *,
    by_distance: Tensor | None = None,
    visible: Callable[[Tensor, Tensor], Tensor | None] | None = None,
    padding: Tensor | None = None,
    sink: Tensor | None = None,
    width: int,
) -> Tensor:
    """Eq. 2 in one call of flex_attention, within what `torch.compile` compiles.

    The log-weight is the dot product over √D, and the bias.

    Args:
        dot_product: (B, H, Tq, C) and (B, H, Tk, C).
        value: (B, H, Tk, D)
        by_distance: additive log-weight (H, Tq + Tk - 1) of distances j - i, from -(Tq - 1) on, between the indices of
            queries i and keys j.
        visible: True where a key is seen, from indices of a query and a key, integers (); None gives all.
        padding: True where a key is hidden, (B, Tk).
        sink, width: as in `kdx.attention.smoother.fused`.

    Returns:
        (B, H, Tq, D)
    """
    query, key, value = (rows.to(_format(value)) for rows in (*dot_product, value))
    furthest = query.size(2) - 1

    def score(product: Tensor, row: Tensor, head: Tensor, asked: Tensor, seen: Tensor) -> Tensor:
        if by_distance is not None:
            product = product + by_distance[head, seen - asked + furthest]
        # Not in the mask, whose blocks would be other ones in each row, and are all the same now.
        return product if padding is None else torch.where(padding[row, seen], -torch.inf, product)

    def mask(row: Tensor, head: Tensor, asked: Tensor, seen: Tensor) -> Tensor:
        found = visible(asked, seen) if visible is not None else None
        return torch.ones_like(asked, dtype=torch.bool) if found is None else found

    blocks = None
    if visible is not None:
        # Of layers that have the same filter the compiler makes it once in each step.
        blocks = create_block_mask(mask, None, None, query.size(2), key.size(2), value.device, BLOCK)
    output, aside = flex_attention(
        query, key, value, score, blocks, scale=width**-0.5, return_aux=AuxRequest(lse=sink is not None)
    )
    if sink is None:
        return output
    assert aside.lse is not None
    # What the keys weigh of all that they and the sink weigh.
    return output * (aside.lse.unsqueeze(-1) - sink).sigmoid().to(output.dtype)


def _format(value: Tensor) -> torch.dtype:
    """Of queries, keys and values alike: autocast's, as in scaled-dot-product attention, or that of the values."""
    device = value.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else value.dtype

"""Parts of one tensor whose gradients are added up in place.

Autograd makes the gradient of each slice a tensor as long as the whole, mostly zeros, and adds them one by one; for
keys and values taken block by block that is work of T × T / block × D, more than the products of a sparse filter.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kdx.attention.interfaces import Part, index_select


def slices_of(whole: Tensor) -> Callable[[Part], Tensor]:
    """Takes parts of (B, H, T, D); all must go through one backward pass, and have no second derivative."""
    if not whole.requires_grad or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return lambda part: index_select(whole, part)
    total = _Total(whole.detach())
    token = _Whole.apply(whole, total)  # type: ignore[no-untyped-call]
    return lambda part: _Slice.apply(token, total, part)  # type: ignore[no-untyped-call]


class _Total:
    def __init__(self, whole: Tensor) -> None:
        self.whole = whole
        self.gradient: Tensor | None = None


class _Whole(torch.autograd.Function):
    # Stands for the whole: its gradient is asked for when those of all slices have come in.
    @staticmethod
    def forward(ctx: Any, whole: Tensor, total: _Total) -> Tensor:
        ctx.total = total
        return whole.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, None]:
        gradient, ctx.total.gradient = ctx.total.gradient, None
        return gradient, None


class _Slice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, total: _Total, part: Part) -> Tensor:
        ctx.total, ctx.part = total, part
        # Detached, for all of it is `whole` itself: as an output it would hold this node, which holds it, for ever.
        return index_select(total.whole, part).detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        total, part = ctx.total, ctx.part
        if total.gradient is None:
            total.gradient = torch.zeros_like(total.whole)
        if isinstance(part, slice):
            total.gradient[..., part, :] += gradient
        else:
            total.gradient.index_add_(-2, part, gradient)
        return gradient.new_zeros(()), None, None

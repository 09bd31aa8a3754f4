"""Records the attention weights of a running model, by Eq. 2 as printed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from kdx.attention import KernelAttention
from kdx.attention.spaces.graph import GraphAttention


class Asked(NamedTuple):
    """What an attention was called with."""

    arguments: tuple[Tensor, ...]
    keywords: Mapping[str, Any]


@contextmanager
def watched(model: nn.Module, see: Callable[[str, Tensor, Asked], None]) -> Iterator[None]:
    """While the model runs, calls `see` for each attention with its module name and normalised weights (B, H, Tq, Tk).

    The call comes before the attention itself, and no gradient flows through it.
    """

    def watching(name: str) -> Any:
        @torch.no_grad()
        def watch(
            module: KernelAttention | GraphAttention, arguments: tuple[Tensor, ...], keywords: dict[str, Any]
        ) -> None:
            see(name, module.weights(*arguments, **keywords), Asked(arguments, keywords))

        return watch

    handles = [
        module.register_forward_pre_hook(watching(name), with_kwargs=True)
        for name, module in model.named_modules()
        if isinstance(module, KernelAttention | GraphAttention)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()

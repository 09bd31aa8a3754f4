"""The attention weights of a running model, by Eq. 2 as printed, and their entropy: how spread out they are.

Entropy is worth a look next to every score: under Xavier initialisation symmetric kernels start near the identity, so
two arms of a study may differ because of their initialisation alone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention import KernelAttention
from kdx.attention.spaces.graph import GraphAttention
from kdx.vocabulary import Attention

ENTROPY = "-Σ w ln w of a query's weights, in nats, mean over layers, heads and queries of the first batch"


@contextmanager
def watched(model: nn.Module, see: Callable[[str, Tensor, Tensor | None], None]) -> Iterator[None]:
    """While the model runs, call `see` for each attention with its module name and normalised weights (B, H, Tq, Tk).

    The third argument is True where a query is padding, (B, Tq); None where none is or it is not known: a decoder is
    given no padding of its own, so its padded queries count. The call comes before the attention itself, and no
    gradient flows through it.
    """

    def watching(name: str) -> Any:
        @torch.no_grad()
        def watch(
            module: KernelAttention | GraphAttention, arguments: tuple[Tensor, ...], keywords: dict[str, Any]
        ) -> None:
            # In self-attention the hidden keys are queries as well.
            padding = keywords.get("key_padding") if len(arguments) == 1 else None
            see(name, module.weights(*arguments, **keywords), padding)

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


@contextmanager
def entropies(model: nn.Module) -> Iterator[dict[str, float]]:
    """While the model runs once, fill a dict: attention → mean entropy in nats over its layers, heads and queries.

    e to that power is the effective number of keys that a query sees. Signed weights enter by their absolute values.
    """
    # Module name → which of the three attentions it is; the layer that holds the module knows.
    attentions = {
        f"{prefix}.{child}{name and '.'}{name}": attention
        for prefix, layer in model.named_modules()
        for child, attention in getattr(layer, "attentions", {}).items()
        if attention
        for name, _ in layer.get_submodule(child).named_modules()
    }
    values: dict[Attention, list[float]] = {}
    means: dict[str, float] = {}

    def see(name: str, weights: Tensor, padding: Tensor | None) -> None:
        values.setdefault(attentions[name], []).append(_mean_entropy(weights, padding))

    with watched(model, see):
        yield means
    means.update({attention.value: sum(layers) / len(layers) for attention, layers in values.items()})


def _mean_entropy(weights: Tensor, padding: Tensor | None) -> float:
    weights = weights.abs().float()
    share = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    entropy = -(share * share.clamp(min=1e-30).log()).sum(-1)  # (B, H, Tq)
    # Queries that are known to be padding do not count.
    return float(entropy.mean() if padding is None else entropy.transpose(0, 1)[:, ~padding].mean())

"""How widely attention looks: the entropy of a query's weights.

Worth a look beside every score: under Xavier's initialisation symmetric kernels begin near the identity, so two arms of
a study may differ by where they start and not by what they are.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from kdx.training.attention_weights import Asked, watched
from kdx.vocabulary import Attention

DEFINITION = "-Σ w ln w of a query's weights, in nats, mean over layers, heads and queries of the first batch"


@contextmanager
def measured(model: nn.Module) -> Iterator[dict[str, float]]:
    """While the model runs once, fills a dict: attention → mean entropy in nats over its layers, heads and queries.

    e to that power is how many keys a query effectively sees. Of signed weights the absolute values count.
    """
    which = _attentions(model)
    found: dict[Attention, list[float]] = {}
    entropies: dict[str, float] = {}
    with watched(model, lambda name, weights, asked: found.setdefault(which[name], []).append(_mean(weights, asked))):
        yield entropies
    entropies.update({place.value: sum(values) / len(values) for place, values in found.items()})


def _attentions(model: nn.Module) -> dict[str, Attention]:
    """Which of the three each attention is, by module name; the layer that holds it says so."""
    return {
        f"{prefix}.{child}{name and '.'}{name}": attention
        for prefix, layer in model.named_modules()
        for child, attention in getattr(layer, "attentions", {}).items()
        if attention
        for name, _ in layer.get_submodule(child).named_modules()
    }


def _mean(weights: Tensor, asked: Asked) -> float:
    weights = weights.abs().float()
    share = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    entropy = -(share * share.clamp(min=1e-30).log()).sum(-1)  # (B, H, Tq)
    padding = asked.keywords.get("key_padding")
    if padding is not None and len(asked.arguments) == 1:
        # In self-attention the hidden keys are queries as well, and nobody reads what they see.
        return float(entropy.transpose(0, 1)[:, ~padding].mean())
    return float(entropy.mean())

"""kdx's attention against that of others, where they are at hand; neither is needed for anything else.

- Transformer-XL's own module: KDX_TRANSFORMER_XL names the folder that holds its `mem_transformer.py`.
- x-transformers: measured when it can be imported.
"""

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention import KernelAttention
from tests.benchmarks.attention import BATCH, HEADS, SHORT, WIDTH, _ratios

# Of its base model on WikiText-103.
XL_WIDTH, XL_HEADS = 410, 10
XL_LENGTHS = (150, 512, 1024)
ROUNDS = 10


def measure() -> dict[str, object]:
    """Their time over ours: above 1, kdx is faster. Forward and backward, fp32, one thread, the fastest round."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {
            "transformer-xl over relative, tokens = memory": _transformer_xl(),
            f"x-transformers over kdx at {SHORT}": _x_transformers(),
        }
    finally:
        torch.set_num_threads(threads)


def _repeat(module: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], None]:
    def forward_and_backward() -> None:
        torch.autograd.backward(module(x).sum())
        x.grad = None

    return forward_and_backward


def _transformer_xl() -> dict[str, float] | str:
    folder = os.environ.get("KDX_TRANSFORMER_XL")
    if folder is None:
        return "not measured: KDX_TRANSFORMER_XL names no folder with mem_transformer.py"
    sys.path.insert(0, folder)
    # Its output layers, which are not measured, ask for a GPU build of torch as soon as they are imported.
    for name, parts in {
        "proj_adaptive_softmax": ["ProjectedAdaptiveLogSoftmax"],
        "log_uniform_sampler": ["LogUniformSampler", "sample_logits"],
    }.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(dict.fromkeys(parts))
    from mem_transformer import PositionalEmbedding, RelPartialLearnableMultiHeadAttn

    ratios: dict[str, float] = {}
    for length in XL_LENGTHS:
        torch.manual_seed(0)
        theirs = RelPartialLearnableMultiHeadAttn(XL_HEADS, XL_WIDTH, XL_WIDTH // XL_HEADS, dropout=0.0)
        biases = [nn.Parameter(torch.randn(XL_HEADS, XL_WIDTH // XL_HEADS)) for _ in range(2)]
        distances = PositionalEmbedding(XL_WIDTH)(torch.arange(2 * length - 1, -1, -1.0))
        hidden = torch.ones(length, 2 * length, dtype=torch.uint8).triu(1 + length)[:, :, None].bool()
        ours = _same(theirs, biases, length)
        x = torch.randn(BATCH, length, XL_WIDTH, requires_grad=True)
        memory = torch.randn(BATCH, length, XL_WIDTH)
        after = (distances, *biases, hidden, memory.transpose(0, 1))
        find_theirs = partial(_find_theirs, theirs, after)
        find_ours = partial(_find_ours, ours, memory, theirs.layer_norm)
        off = float((find_ours(x) - find_theirs(x)).detach().abs().max())
        assert off < 1e-4, f"the two differ by {off}"
        passes = {"ours": _repeat(find_ours, x), "theirs": _repeat(find_theirs, x)}
        ratios[str(length)] = _ratios(passes, "ours", rounds=ROUNDS)["theirs"]
    return ratios


def _find_theirs(theirs: Any, after: tuple[Tensor, ...], x: Tensor) -> Tensor:
    return theirs(x.transpose(0, 1), *after).transpose(0, 1)


def _find_ours(ours: KernelAttention, memory: Tensor, layer_norm: nn.Module, x: Tensor) -> Tensor:
    # Their module ends in the residual sum and the normalisation.
    return layer_norm(x + ours(x, memory=memory))


def _same(theirs: Any, biases: list[nn.Parameter], memory: int) -> KernelAttention:
    """Our attention with their weights. Their sinusoids are all sines, then all cosines; ours are interleaved."""
    ours = KernelAttention(
        XL_WIDTH, XL_HEADS, positions=["relative"], filter="causal", bias=False, memory_length=memory
    )
    query, key, value = theirs.qkv_net.weight.detach().chunk(3)
    distances = theirs.r_net.weight.detach()
    interleaved = torch.stack(distances.chunk(2, dim=1), -1).flatten(1)
    assert ours.query is not None and ours.key is not None and ours.value is not None
    relative: Any = ours.positions["relative"]
    with torch.no_grad():
        pairs = [
            (ours.query.weight, query),
            (ours.key.weight, key),
            (ours.value.weight, value),
            (ours.output.weight, theirs.o_net.weight),
            (relative.projection.weight, interleaved),
            (relative.u, biases[0]),
            (relative.v, biases[1]),
        ]
        for mine, their in pairs:
            mine.copy_(their)
    return ours


def _x_transformers() -> dict[str, float] | str:
    if importlib.util.find_spec("x_transformers") is None:
        return "not measured: x-transformers is not installed"
    from x_transformers.x_transformers import (
        AlibiPositionalBias,
        Attention,
        RelativePositionBias,
        RotaryEmbedding,
    )

    head_width = WIDTH // HEADS

    class Theirs(nn.Module):
        """Their layers make positions outside of the attention, and so does this."""

        def __init__(self, bias: nn.Module | None = None, turned: bool = False, **arguments: object) -> None:
            super().__init__()
            self.attention = Attention(WIDTH, heads=HEADS, dim_head=head_width, **arguments)
            self.bias = bias
            # All features of a head, as ours.
            self.rotary = RotaryEmbedding(head_width) if turned else None

        def forward(self, x: Tensor) -> Tensor:
            turns = None if self.rotary is None else self.rotary.forward_from_seq_len(x.size(1))
            return self.attention(x, rel_pos=self.bias, rotary_pos_emb=turns)

    buckets = RelativePositionBias(head_width**0.5, causal=False, heads=HEADS)
    variants: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "exponential": ({}, {"flash": True}),
        "exponential, causal": ({"filter": "causal"}, {"flash": True, "causal": True}),
        "rbf": ({"kernel": "rbf"}, {"l2_distance": True}),
        "cosine": ({"kernel": "cosine"}, {"qk_norm": True, "flash": True}),
        "alibi": ({"positions": ["alibi"]}, {"flash": True, "bias": AlibiPositionalBias(HEADS)}),
        "t5": ({"positions": ["t5"]}, {"flash": True, "bias": buckets}),
        "rotary": ({"positions": ["rotary"]}, {"flash": True, "turned": True}),
    }
    ratios = {}
    for name, (mine, their) in variants.items():
        x = torch.randn(BATCH, SHORT, WIDTH, requires_grad=True)
        passes = {
            "ours": _repeat(KernelAttention(WIDTH, HEADS, bias=False, **mine), x),
            "theirs": _repeat(Theirs(**their), x),
        }
        ratios[name] = _ratios(passes, "ours", rounds=ROUNDS)["theirs"]
    return ratios


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))

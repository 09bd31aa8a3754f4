"""kdx's attention against that of others, where they are at hand; neither is needed for anything else.

- Transformer-XL's own module: KDX_TRANSFORMER_XL names the folder that holds its `mem_transformer.py`.
- x-transformers: measured when it can be imported.
"""

import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor, nn

from kdx.attention import KernelAttention
from tests.benchmarks.attention import BATCH, HEADS, WIDTH, _ratios

# Of its base model on WikiText-103.
XL_WIDTH, XL_HEADS = 410, 10
ROUNDS = 10


def measure() -> dict[str, object]:
    """Their time over ours: above 1, kdx is faster. Forward and backward, fp32, one thread, the fastest round."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {
            "transformer-xl over relative, tokens = memory": _transformer_xl(),
            "x-transformers over kdx at 512": _x_transformers(),
        }
    finally:
        torch.set_num_threads(threads)


def _repeat(module: nn.Module, x: Tensor) -> Callable[[], None]:
    def forward_and_backward() -> None:
        module(x).sum().backward()
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
    for length in (150, 512, 1024):
        torch.manual_seed(0)
        theirs = RelPartialLearnableMultiHeadAttn(XL_HEADS, XL_WIDTH, XL_WIDTH // XL_HEADS, dropout=0.0)
        biases = [nn.Parameter(torch.randn(XL_HEADS, XL_WIDTH // XL_HEADS)) for _ in range(2)]
        distances = PositionalEmbedding(XL_WIDTH)(torch.arange(2 * length - 1, -1, -1.0))
        hidden = torch.ones(length, 2 * length, dtype=torch.uint8).triu(1 + length)[:, :, None].bool()
        ours = _same(theirs, biases, length)
        x = torch.randn(BATCH, length, XL_WIDTH, requires_grad=True)
        memory = torch.randn(BATCH, length, XL_WIDTH)

        class Theirs(nn.Module):
            def forward(
                self, x: Tensor, theirs=theirs, biases=biases, distances=distances, hidden=hidden, memory=memory
            ) -> Tensor:
                return theirs(x.transpose(0, 1), distances, *biases, hidden, memory.transpose(0, 1)).transpose(0, 1)

        class Ours(nn.Module):
            def forward(self, x: Tensor, ours=ours, theirs=theirs, memory=memory) -> Tensor:
                # Their module ends in the residual sum and the normalisation.
                return theirs.layer_norm(x + ours(x, memory=memory))

        off = float((Ours()(x) - Theirs()(x)).detach().abs().max())
        assert off < 1e-4, f"the two differ by {off}"
        passes = {"ours": _repeat(Ours(), x), "theirs": _repeat(Theirs(), x)}
        ratios[str(length)] = _ratios(passes, "ours", rounds=ROUNDS)["theirs"]
    return ratios


def _same(theirs: nn.Module, biases: list[nn.Parameter], memory: int) -> KernelAttention:
    """Our attention with their weights. Their sinusoids are all sines, then all cosines; ours are interleaved."""
    ours = KernelAttention(
        XL_WIDTH, XL_HEADS, positions=["relative"], filter="causal", bias=False, memory_length=memory
    )
    query, key, value = theirs.qkv_net.weight.detach().chunk(3)
    distances = theirs.r_net.weight.detach()
    interleaved = torch.stack(distances.chunk(2, dim=1), -1).flatten(1)
    relative = ours.positions["relative"]
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
    variants: dict[str, tuple[dict, dict]] = {
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
        x = torch.randn(BATCH, 512, WIDTH, requires_grad=True)
        passes = {
            "ours": _repeat(KernelAttention(WIDTH, HEADS, bias=False, **mine), x),
            "theirs": _repeat(Theirs(**their), x),
        }
        ratios[name] = _ratios(passes, "ours", rounds=ROUNDS)["theirs"]
    return ratios

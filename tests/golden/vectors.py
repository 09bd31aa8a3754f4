"""A few numbers of a small attention in float64 for every name of each family, and for the options that change it."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from kdx.attention import Cache, KernelAttention
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers.convolution import Convolution
from kdx.attention.mixers.equivariant import Equivariant
from kdx.attention.positions import POSITIONS
from kdx.attention.spaces.graph import GraphAttention, Relation
from kdx.attention.spaces.image import ImageAttention
from kdx.attention.spaces.multimodal import Combine, CrossmodalAttention, MultimodalAttention
from kdx.attention.spaces.set import SetAttention

WIDTH, HEADS, ROWS, TOKENS = 16, 2, 2, 9
LONG = 160  # tokens, beyond which kernels with feature maps sum over the keys

Vectors = dict[str, dict[str, list[float]]]
Call = Callable[[nn.Module, Tensor], Tensor]

KERNEL_OPTIONS: tuple[dict[str, Any], ...] = (
    {"kernel": "exponential", "temperature": 2.0},
    {"kernel": "exponential", "scale": "unscaled"},
    {"kernel": "rbf", "temperature": 2.0},
    {"kernel": "rbf", "temperature": "learned"},
    {"kernel": "favor", "random_features": 8},
    {"kernel": "cosformer", "horizon": 12},
)
POSITION_OPTIONS: tuple[dict[str, Any], ...] = (
    {"positions": ["lookup"], "clip": 2},
    {"positions": ["lookup"], "sharing": "shared"},
    {"positions": ["relative"], "xl_bias": "none"},
    {"positions": ["relative"], "symmetry": "symmetric"},
    {"positions": ["rotary"], "rotary_base": 100.0, "rotary_share": 0.5},
    {"positions": ["rotary"], "rotary_scaling": "interpolation", "rotary_factor": 4.0},
    {"positions": ["rotary"], "rotary_scaling": "ntk", "rotary_factor": 4.0},
    {"positions": ["rotary"], "rotary_scaling": "yarn", "rotary_factor": 4.0, "original_length": 8},
    {"positions": ["fire"], "threshold": 4},
    {"positions": ["sandwich"], "frequencies": 4},
    {"positions": ["cope"], "counted": 4},
    {"positions": ["product", "alibi"], "kernel": "rbf"},
)
PARTS: dict[str, tuple[dict[str, Any], ...]] = {
    "value": (
        {"value": "without-position"},
        {"value": "with-position"},
        {"value": "table"},
        {"value": "table", "clip": 2, "sharing": "shared"},
        {"value": "rotary"},
    ),
    "filter": (
        {"filter": "full"},
        {"filter": "causal"},
        {"filter": "strided", "stride": 3},
        {"filter": "fixed", "stride": 4, "summary": 2},
        {"filter": "window", "left": 2, "sinks": 1},
        {"filter": "window", "left": 2, "right": 1, "dilation": 2, "reach": "both"},
        {"filter": "top-k", "top_k": 3},
    ),
    "normaliser": (
        {"normaliser": "row-sum"},
        {"normaliser": "length", "kernel": "relu-squared"},
        {"normaliser": "softmax-plus-one"},
        {"normaliser": "learned-sink"},
        {"normaliser": "sigmoid"},
        {"normaliser": "sigmoid", "sigmoid_bias": "none"},
        {"normaliser": "entmax"},
        {"normaliser": "entmax", "alpha": 2.0},
        {"normaliser": "scalable-softmax"},
        {"normaliser": "softpick"},
        {"normaliser": "stick-breaking", "filter": "causal"},
    ),
    "encoding": (
        {"encoding": "sinusoidal", "positions": ["product"]},
        {"encoding": "sinusoidal", "positions": ["direct-sum"], "sinusoids": "fairseq"},
        {"encoding": "learned", "positions": ["product"]},
        {"encoding": "learned", "positions": ["direct-sum"]},
    ),
    "heads": (
        {"kv_heads": 1},
        {"projection": "none"},
        {"value_projection": "keys"},
        {"smoother": "local-linear"},
        {"head_width": 6, "bias": False},
        {"qk_norm": "l2"},
        {"qk_norm": "rms"},
        {"maps": "differential"},
        {"output_gate": "sigmoid"},
    ),
}


def vectors(path: str = "fused") -> Vectors:
    """Family → case → numbers: the output's norm and projection, and the norms of the gradients of input and weights.

    Args:
        path: the path of every attention that has several; all give the same numbers.
    """
    numbers: Vectors = {}
    for family, name, make, call, tokens in _cases():
        torch.manual_seed(0)
        module = _in_float64(make)
        if hasattr(module, "path"):
            module.path = path  # type: ignore[assignment]
        numbers.setdefault(family, {})[name] = _numbers(module, call, tokens)
    return numbers


def _in_float64(make: Callable[[], nn.Module]) -> nn.Module:
    """A module whose first weights are drawn in float64: those of float32 differ by processor in their last bits."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return make().double().eval()
    finally:
        torch.set_default_dtype(before)


def _numbers(module: nn.Module, call: Call, tokens: int) -> list[float]:
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    x = draw(ROWS, tokens, WIDTH).requires_grad_()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(draw(*parameter.shape), alpha=0.3)  # what starts at zero counts as well
    output = call(module, x)
    projection = (output * draw(*output.shape)).sum()
    projection.backward()  # type: ignore[no-untyped-call]
    weights = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    assert x.grad is not None
    norms = [
        output.detach().norm(),
        projection.detach(),
        x.grad.norm(),
        torch.stack([w.norm() for w in weights]).norm(),
    ]
    return [float(norm) for norm in norms]


def _cases() -> Iterator[tuple[str, str, Callable[[], nn.Module], Call, int]]:
    """Family, name, module, how it is called, and tokens."""

    def attention(**parts: Any) -> Callable[[], nn.Module]:
        usual: dict[str, Any] = {"filter": "causal", "max_positions": 64}
        return partial(KernelAttention, WIDTH, HEADS, **usual | parts)

    for kernel in KERNELS:
        yield "kernel", kernel, attention(kernel=kernel), _forward, TOKENS
        yield "kernel", f"{kernel}, symmetric", attention(kernel=kernel, symmetry="symmetric"), _forward, TOKENS
        yield "kernel", f"{kernel}, {LONG} tokens", attention(kernel=kernel), _forward, LONG
    for position in ("none", *POSITIONS):
        yield "position", position, attention(positions=[position]), _forward, TOKENS
        across = attention(positions=[position], kernel="rbf", filter="full")
        yield "position", f"{position}, from others", across, _across, TOKENS
    for family, several in {"kernel": KERNEL_OPTIONS, "position": POSITION_OPTIONS, **PARTS}.items():
        for parts in several:
            usual = {"positions": ["product"]} if family == "value" else {}
            yield family, _name(parts), attention(**usual | parts), _forward, TOKENS
    yield "heads", "memory of 4", attention(positions=["relative"], memory_length=4), _with_memory, TOKENS
    yield "heads", "padding", attention(positions=["product"], filter="full"), _padded, TOKENS
    yield "heads", "token by token", attention(positions=["product"]), _by_token, TOKENS

    yield "mixer", "attention", attention(filter="full"), _forward, TOKENS
    for filter_ in ("full", "causal"):
        yield "mixer", f"equivariant, {filter_}", partial(Equivariant, WIDTH, filter=filter_), _forward, TOKENS
        yield "mixer", f"convolution, {filter_}", partial(Convolution, WIDTH, filter=filter_), _forward, TOKENS

    yield "space", "sequence", attention(positions=["product"]), _forward, TOKENS
    yield "space", "set", partial(SetAttention, WIDTH, HEADS, kernel="rbf"), _forward, TOKENS
    for schemes in (["product"], ["direct-sum"], []):
        name = ", ".join(schemes) or "none"
        image = partial(ImageAttention, WIDTH, HEADS, columns=3, positions=schemes, filter="causal")
        joint = partial(MultimodalAttention, [WIDTH // 2] * 2, 1, positions=schemes, kernel="rbf")
        yield "space", f"image, {name}", image, _forward, TOKENS
        yield "space", f"multimodal, {name}", joint, _forward, TOKENS
    for combine in Combine:
        pairs = partial(CrossmodalAttention, WIDTH, HEADS, ["a", "b", "c"], combine=combine, positions=["product"])
        yield "space", f"crossmodal, {combine}", pairs, _crossmodal, TOKENS
    for relations in ([Relation.KEY], [Relation.VALUE], [Relation.KEY, Relation.VALUE], []):
        graph = partial(GraphAttention, WIDTH, HEADS, 3, relations=relations)
        yield "space", ", ".join(["graph", *relations]), graph, _along_edges, TOKENS


def _name(parts: dict[str, Any]) -> str:
    """Such as `lookup, clip 2`: the name chosen first, then its options."""
    (_, first), *rest = parts.items()
    chosen = " + ".join(first) if isinstance(first, list) else str(first)
    options = [f"{key} {' + '.join(value) if isinstance(value, list) else value}" for key, value in rest]
    return ", ".join([chosen, *options])


def _forward(module: nn.Module, x: Tensor) -> Tensor:
    output: Tensor = module(x)
    return output


def _across(module: nn.Module, x: Tensor) -> Tensor:
    output: Tensor = module(x, x.flip(1)[:, : TOKENS - 2] + 0.5)
    return output


def _with_memory(module: nn.Module, x: Tensor) -> Tensor:
    output: Tensor = module(x, memory=x.detach()[:, :3].flip(1))
    return output


def _padded(module: nn.Module, x: Tensor) -> Tensor:
    hidden = torch.zeros(ROWS, TOKENS, dtype=torch.bool)
    hidden[1, TOKENS // 2 :] = True
    output: Tensor = module(x, key_padding=hidden)
    return output


def _by_token(module: nn.Module, x: Tensor) -> Tensor:
    cache = Cache()
    return torch.cat([module(token, cache=cache) for token in torch.split(x, 1, dim=1)], 1)


def _crossmodal(module: nn.Module, x: Tensor) -> Tensor:
    streams = {"a": x, "b": x[:, :5] * 0.5, "c": x[:, 2:].flip(1)}
    learned = module(streams, positions={"b": 2 * torch.arange(5)})
    return torch.cat([learned[name] for name in streams], 1)


def _along_edges(module: nn.Module, x: Tensor) -> Tensor:
    places = torch.arange(TOKENS)
    labels = (places.unsqueeze(-1) * 2 + places * 3) % 4 - 1  # -1 is no edge
    output: Tensor = module(x, labels.fill_diagonal_(0))
    return output

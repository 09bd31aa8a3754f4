"""One component of an attention against theory: the properties that each must have, whoever wrote it."""

import copy
from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from kdx.attention.interfaces import (
    AbsoluteEncoding,
    FilterFunction,
    KernelFunction,
    NormaliserFunction,
    PositionScheme,
    ValueFunction,
    Word,
)
from kdx.attention.module import KernelAttention
from kdx.attention.verification.device import check_device
from kdx.attention.verification.interface import check_parts, check_reads
from kdx.attention.verification.propositions import (
    DRAWS,
    HEADS,
    LONG,
    LONG_BATCH,
    TOKENS,
    WIDTH,
    PropositionError,
    _both,
    _decoded,
    _draw,
    _long_errors,
)
from kdx.attention.verification.rounding import condition, roundings
from kdx.attention.verification.torch_state import torch_left_alone
from kdx.errors import PartError
from kdx.vocabulary import Symmetry

AXES: Mapping[str, type[Word]] = {
    "kernel": KernelFunction,
    "position": PositionScheme,
    "value": ValueFunction,
    "filter": FilterFunction,
    "normaliser": NormaliserFunction,
    "encoding": AbsoluteEncoding,
}
"""Axis → the base class of its components, for each that is checked."""
_KERNELS, _POSITIONS, _FILTERS = ("exponential", "rbf"), ((), ("lookup",), ("direct-sum",)), ("full", "causal")
_AHEAD = 3
"""Tokens of padding; positions by which tokens are moved."""
# A difference quotient has half the digits of its number format, at a step that depends on the curvature: the best of
# some counts, since a wrong gradient is off at every step. The smallest steps are for filters that choose by weights:
# over a longer one they may choose another key.
_STEPS, _QUOTIENT = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8), 1e-6

MEANING = {
    "both paths agree": "what it gives for the fast path (dot_product, by_part, feature_map, seen) is another thing"
    " than what it gives for the formula (log_weight, weight, visible)",
    "both paths agree on long rows": "in blocks of queries and keys, or in float32, it gives other numbers than the"
    " formula for the whole row in float64, or other gradients",
    "rows of a batch are independent": "what it gives for a row depends on the other rows of the batch",
    "cached decoding equals teacher forcing": "what it gives for a query depends on how many queries and keys there"
    " are, or on keys after the query; a token has to be found by its position, not by its index",
    "memory equals one long pass": "what it gives for a pair depends on how many queries and keys there are; a token"
    " has to be found by its position, not by its index",
    "padding changes nothing": "what it gives for a pair depends on tokens that are hidden, or on their number",
    "half precision": "in bf16 it loses more digits than its inputs do; see kdx.attention.interfaces.upcast",
    "gradients are those of differences": "its gradient by the tokens, or by what it learns, is not that of its"
    " numbers; look for detach, data, no_grad and a backward of its own",
}
"""Proposition → what is wrong with a part that misses it, in words for its author."""


def findings_of(
    kind: type[Word], device: str, options: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[PropositionError]:
    """Every check of an attention that has the component, in several variants.

    First of all what its class says of it, and that it leaves torch's settings and random numbers alone. Then both
    paths agree, on short rows and on those long enough for blocks, and so do their gradients; gradients are those of
    differences; other rows and hidden tokens change nothing; decoding with a cache, or after a memory, gives what one
    pass gives; and half precision gives what float64 gives, as far as it can.

    Args:
        kind: its class, see `AXES`.
        options: values of its options; the others have their defaults.

    Raises:
        PartError: it is no part of its kind, or changes a setting of torch.
        KdxError: there is no such device.
        Exception: whatever the part raises.
    """
    check_device(device)
    variants = [(name, {**choices, **options}) for name, choices in _variants(kind)]
    _, choices = variants[-1]
    _check_interface(kind, choices)
    x = _draw(device, 2, TOKENS, WIDTH)
    for name, choices in variants:
        module = _attention(device, choices)
        _check_passes(module, x)
        with_memory = _attention(device, choices, memory_length=TOKENS // 2) if _is_causal(choices) else None
        with torch_left_alone("when it computes"), torch.no_grad():
            yield from _of_forms(name, module, with_memory, x)
        with torch_left_alone("when it computes a gradient"):
            error = _difference(module, x)
            yield PropositionError("gradients are those of differences", name, error, _QUOTIENT)
    long = _draw(device, LONG_BATCH, LONG, WIDTH)
    module = _attention(device, choices)
    with torch_left_alone("when it computes"):
        for dtype, error in _long_errors(module, long, jumps=False):
            # Of two keys that weigh nearly the same, a filter may choose another one in float32.
            if module.filter.reads_content and dtype == "float32":
                continue
            yield PropositionError("both paths agree on long rows", f"{name}, {dtype}", error)


def _variants(kind: type[Word]) -> Iterator[tuple[str, dict[str, Any]]]:
    axis = next(axis for axis, base in AXES.items() if issubclass(kind, base))
    filters: tuple[Any, ...] = (kind,) if axis == "filter" else _FILTERS
    if issubclass(kind, PositionScheme) and kind.past_only:
        filters = ("causal",)
    kernels: tuple[Any, ...] = (kind,) if axis == "kernel" else _KERNELS
    schemes: tuple[Any, ...] = ((kind,),) if axis == "position" else _POSITIONS
    own = {axis: kind} if axis in ("value", "normaliser", "encoding") else {}
    for kernel, positions, filter in product(kernels, schemes, filters):
        name = ", ".join(_name(one) for one in (*own.values(), kernel, *positions, filter))
        yield name, {"kernel": kernel, "positions": positions, "filter": filter, **own}
    if axis == "kernel":
        yield f"{_name(kind)}, symmetric", {"kernel": kind, "filter": "causal", "symmetry": Symmetry.SYMMETRIC}


def _name(word: str | type) -> str:
    return word if isinstance(word, str) else word.__name__


def _attention(device: str, choices: dict[str, Any], **more: Any) -> KernelAttention:
    with torch_left_alone("when it is made", may_draw=True):
        return KernelAttention(WIDTH, HEADS, **choices, **more).double().to(device).eval()


def _check_interface(kind: type[Word], choices: dict[str, Any]) -> None:
    module, classes = _attention("cpu", choices), [kind]
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        with torch_left_alone("when it computes"):
            x = _draw("cpu", 2, TOKENS, WIDTH).to(dtype)
            check_parts(copy.deepcopy(module).to(dtype), x, past=True, classes=classes)
    with torch_left_alone("when it computes"):
        check_reads(module, _draw("cpu", 2, TOKENS, WIDTH), past=_is_causal(choices), classes=classes)


def _check_passes(module: KernelAttention, x: Tensor) -> None:
    """Two passes forward and backward as in training, and whether it gives the same again out of it."""
    with torch_left_alone("in training", may_draw=True):
        for _ in range(2):  # the second fails where something is kept of the first
            module.train()(x).sum().backward()
    module.zero_grad()
    module.eval()
    with torch_left_alone("when it computes"):
        if not torch.equal(module(x).nan_to_num(), module(x).nan_to_num()):
            problem = "it gives other numbers for the same tokens when it is asked again"
            raise PartError(problem, hint="keep nothing between two calls, and draw no random numbers")


def _is_causal(choices: dict[str, Any]) -> bool:
    """Whether no query sees what stands after it, as in a decoder."""
    filter = choices["filter"]
    return filter == "causal" or (not isinstance(filter, str) and not filter.sees_later)


def _of_forms(
    name: str, module: KernelAttention, with_memory: KernelAttention | None, x: Tensor
) -> Iterator[PropositionError]:
    """What several ways of computing the same thing must agree on.

    Args:
        with_memory: the same attention with a memory; None: its queries see what stands after them.
    """

    def both(proposition: str, found: Any, expected: Any = KernelAttention.__call__, of: Any = module) -> Any:
        return PropositionError(proposition, name, _both(of, found, expected, x))

    yield both("both paths agree", lambda module, x: module.smooth(x), lambda module, x: _literal(module, x))
    yield both("rows of a batch are independent", lambda module, x: torch.cat([module(row) for row in x.split(1)]))
    if with_memory is not None:
        yield both("cached decoding equals teacher forcing", _decoded)
        yield both("memory equals one long pass", _after_memory, _in_one_pass, of=with_memory)
    padding = _draw(str(x.device), 2, _AHEAD, WIDTH, seed=7)
    yield both("padding changes nothing", lambda module, x: _padded(module, x, padding), _there_and_ahead)
    if (error := _half(module, x)) is not None:
        yield PropositionError("half precision", name, error)


def _literal(module: KernelAttention, x: Tensor) -> Tensor:
    path, module.path = module.path, "literal"
    try:
        return module.smooth(x)
    finally:
        module.path = path


def _after_memory(module: KernelAttention, x: Tensor) -> Tensor:
    return module(x[:, module.memory_length :], memory=x[:, : module.memory_length])


def _in_one_pass(module: KernelAttention, x: Tensor) -> Tensor:
    return module(x, query_positions=torch.arange(x.size(1), device=x.device))[:, module.memory_length :]


def _padded(module: KernelAttention, x: Tensor, padding: Tensor) -> Tensor:
    """With padding to the right, and, moved by as many positions, to the left: (2, B, T, M)."""
    real = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
    hidden = torch.ones(x.size(0), _AHEAD, dtype=torch.bool, device=x.device)
    to_right = module(torch.cat([x, padding], 1), key_padding=torch.cat([real, hidden], 1))[:, :TOKENS]
    to_left = module(torch.cat([padding, x], 1), key_padding=torch.cat([hidden, real], 1))[:, _AHEAD:]
    return torch.stack([to_right, to_left])


def _there_and_ahead(module: KernelAttention, x: Tensor) -> Tensor:
    ahead = torch.arange(_AHEAD, TOKENS + _AHEAD, device=x.device)
    return torch.stack([module(x), module(x, query_positions=ahead)])


def _half(module: KernelAttention, x: Tensor) -> float | None:
    """How far half precision is off; None: its filter may choose another key, so that no distance says anything."""
    found = copy.deepcopy(module).to(torch.bfloat16).smooth(x.to(torch.bfloat16))
    if module.filter.reads_content:
        return None if bool(found.isfinite().all()) else torch.nan
    return roundings(found, module.smooth(x), condition(KernelAttention.smooth, module, x, draws=DRAWS))


def _difference(module: KernelAttention, x: Tensor) -> float:
    """How far the derivative in some direction, of the tokens and of all that is learned, is off: a share of itself."""
    device = str(x.device)
    learned = list(module.parameters())
    before = [one.detach().clone() for one in learned]
    inputs = [x.clone().requires_grad_(), *learned]
    directions = [_draw(device, *one.shape, seed=11 + place) for place, one in enumerate(inputs)]
    factors = _draw(device, *x.shape, seed=7)
    output = (module(inputs[0]) * factors).sum()
    gradients = torch.autograd.grad(output, inputs, allow_unused=True, materialize_grads=True)
    derivative = sum(((one * its).sum() for one, its in zip(gradients, directions, strict=True)), torch.zeros(()))
    scale = torch.stack([one.norm() * its.norm() for one, its in zip(gradients, directions, strict=True)]).norm()

    def at(step: float) -> Tensor:
        for one, was, its in zip(learned, before, directions[1:], strict=True):
            one.copy_(was + step * its)
        return (module(x + step * directions[0]) * factors).sum()

    with torch.no_grad():
        errors = [float(((at(step) - at(-step)) / (2 * step) - derivative).abs() / scale) for step in _STEPS]
        at(0.0)
    return min(errors, key=lambda error: error if error == error else torch.inf)

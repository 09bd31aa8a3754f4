"""One word against theory: what every part of an attention must fulfil, whoever wrote it."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from kdx.attention.interfaces import KernelFunction
from kdx.attention.module import KernelAttention
from kdx.attention.verification.device import check_device
from kdx.attention.verification.propositions import (
    DRAWS,
    HEADS,
    LONG,
    LONG_BATCH,
    TOKENS,
    WIDTH,
    PropositionError,
    _attention,
    _both,
    _decoded,
    _draw,
    _long_errors,
)
from kdx.attention.verification.rounding import condition, roundings

AXES = ("kernel", "position", "value", "filter", "normaliser", "encoding")
_KERNELS, _POSITIONS, _FILTERS = ("exponential", "rbf"), ((), ("lookup",), ("direct-sum",)), ("full", "causal")
# A difference quotient has half the digits of its number format, at a step that depends on the curvature: the best of
# some counts, since a wrong gradient is off at every step.
_STEPS, _QUOTIENT = (1e-4, 1e-5, 1e-6, 1e-7), 1e-6


def findings_of(axis: str, word: str, device: str) -> Iterator[PropositionError]:
    """Every check of an attention that has the word, in several variants.

    Both paths agree, on short rows and on those long enough for blocks, and so do their gradients; gradients are those
    of differences; hidden tokens change nothing; decoding with a cache gives what one pass gives; and half precision
    gives what float64 gives, as far as it can.

    Args:
        axis: kernel, position, value, filter, normaliser or encoding.

    Raises:
        KdxError: there is no such device.
        Exception: whatever the part raises.
    """
    check_device(device)
    if axis == "kernel":
        check_kernel(_attention(device, kernel=word).kernel, _draw(device, 1, HEADS, TOKENS, WIDTH // HEADS))
    x, padding = _draw(device, 2, TOKENS, WIDTH), _draw(device, 2, 3, WIDTH, seed=7)
    for name, choices in _variants(axis, word):
        module = _attention(device, **choices)
        with torch.no_grad():
            literally = _both(module, lambda module, x: module.smooth(x), lambda module, x: _literal(module, x), x)
            yield PropositionError("both paths agree", name, literally)
            if choices["filter"] == "causal":
                cached = _both(module, _decoded, lambda module, x: module(x), x)
                yield PropositionError("cached decoding equals teacher forcing", name, cached)
            elif axis != "filter":
                hidden = _both(module, lambda module, x: _padded(module, x, padding), lambda module, x: module(x), x)
                yield PropositionError("padding changes nothing", name, hidden)
            yield PropositionError("half precision", name, _half(module, x))
        yield PropositionError("gradients are those of differences", name, _difference(module, x), _QUOTIENT)
    name, choices = list(_variants(axis, word))[-1]
    long = _draw(device, LONG_BATCH, LONG, WIDTH)
    for dtype, error in _long_errors(_attention(device, **choices), long, jumps=False):
        yield PropositionError("both paths agree on long rows", f"{name}, {dtype}", error)


def check_kernel(kernel: KernelFunction, x: Tensor) -> None:
    """Whether a kernel gives what its class says, from tokens (B, T, D).

    Raises:
        ValueError: it gives something else.
    """
    before = x.detach().clone()
    log_weight, weight = kernel.log_weight(x, x), kernel.weight(x, x)
    if not torch.equal(x, before):
        raise ValueError("it changes the queries or the keys that it is given")
    found = log_weight if weight is None else weight
    if found is None:
        raise ValueError("neither log_weight nor weight gives numbers: define one of them")
    name = "log_weight" if weight is None else "weight"
    expected = (*x.shape[:-1], x.size(-2))
    if not isinstance(found, Tensor) or found.shape != expected or found.dtype != x.dtype:
        kind = f"{found.dtype} {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        problem = f"{name} gives {kind} for queries and keys of {x.dtype} {tuple(x.shape)}"
        raise ValueError(f"{problem}; allowed: {x.dtype} {expected}")
    again = kernel.log_weight(x, x) if weight is None else kernel.weight(x, x)
    if not torch.equal(torch.nan_to_num(found), torch.nan_to_num(again)):  # type: ignore[arg-type]
        raise ValueError(f"{name} gives other numbers for the same queries and keys when it is asked again")
    if weight is None or kernel.gives == "logarithm":
        if (weight is None) != (kernel.gives == "logarithm"):
            hint = "write gives = 'weight', or 'signed weight'" if weight is not None else "define weight"
            raise ValueError(f"its class says that it gives a {kernel.gives}, and {name} gives numbers: {hint}")
    elif kernel.gives == "weight" and bool((weight < 0).any()):
        raise ValueError("its class says that it gives a weight, and some are below 0: write gives = 'signed weight'")


def _variants(axis: str, word: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for kernel in (word,) if axis == "kernel" else _KERNELS:
        for positions in ((word,),) if axis == "position" else _POSITIONS:
            for filter in (word,) if axis == "filter" else _FILTERS:
                own = {axis: word} if axis in ("value", "normaliser", "encoding") else {}
                name = ", ".join((*own.values(), kernel, *positions, filter))
                yield name, {"kernel": kernel, "positions": positions, "filter": filter, **own}


def _literal(module: KernelAttention, x: Tensor) -> Tensor:
    path, module.path = module.path, "literal"
    try:
        return module.smooth(x)
    finally:
        module.path = path


def _padded(module: KernelAttention, x: Tensor, padding: Tensor) -> Tensor:
    hidden = torch.zeros(x.size(0), TOKENS + padding.size(1), dtype=torch.bool, device=x.device)
    hidden[:, TOKENS:] = True
    return module(torch.cat([x, padding], 1), key_padding=hidden)[:, :TOKENS]


def _half(module: KernelAttention, x: Tensor) -> float:
    expected, unit = module.smooth(x), condition(KernelAttention.smooth, module, x, draws=DRAWS)
    found = copy.deepcopy(module).to(torch.bfloat16).smooth(x.to(torch.bfloat16))
    return roundings(found, expected, unit)


def _difference(module: KernelAttention, x: Tensor) -> float:
    """How far the derivative in some direction is off, as a share of itself."""
    direction, factors = _draw(str(x.device), *x.shape, seed=11), _draw(str(x.device), *x.shape, seed=13)
    moved = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad((module(moved) * factors).sum(), moved)
    derivative, scale = (gradient * direction).sum(), gradient.norm() * direction.norm()
    with torch.no_grad():
        errors = []
        for step in _STEPS:
            ahead, behind = ((module(x + moved * direction) * factors).sum() for moved in (step, -step))
            errors.append(float(((ahead - behind) / (2 * step) - derivative).abs() / scale))
    return min(errors, key=lambda error: error if error == error else torch.inf)

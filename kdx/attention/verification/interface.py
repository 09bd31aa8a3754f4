"""Checks that a component fulfils its interface (`kdx.attention.interfaces`), and what its class declares.

These checks are quick, and each says what is wrong. A sweep makes them before it starts, `cases` before other checks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from kdx.attention.interfaces import (
    AbsoluteEncoding,
    FilterFunction,
    KernelFunction,
    PositionScheme,
    TokenPositions,
    Word,
)
from kdx.attention.module import KernelAttention
from kdx.attention.verification.properties import PROPERTIES
from kdx.errors import ComponentError

_PLACES = range(-3, 10)
"""Positions of a filter's tokens: padding on the left and tokens of a memory may be before 0."""
_BLOCKS = (slice(0, 13), slice(0, 4), slice(4, 9), slice(8, 9), slice(12, 13))
"""Some of these positions, as blocks, a memory and a cache select them."""

_CUT = "look for detach, data, no_grad, item and round"


def rehearse(module: nn.Module, x: Tensor, *, past: bool, classes: Sequence[type]) -> None:
    """Check, in the number format of a run, for faults of self-attention or another mixer that make a table wrong.

    Its numbers must be finite, the same in a second computation, and have a gradient by everything that they depend on;
    and it must have the properties that are `rehearsed`. A component that reads later tokens, for example, would have
    the best cell of a table.

    Args:
        x: tokens (B, T, M), two rows or more.
        past: whether it belongs to a decoder.
        classes: classes of the components that are tried; others count as right.

    Raises:
        ComponentError: one of these conditions does not hold.
    """
    components = _components_of(module) if isinstance(module, KernelAttention) else [module]
    tried = [type(component) for component in components if type(component) in classes]
    if not tried:
        return

    def refuse(problem: str, hint: str | None = None) -> NoReturn:
        raise ComponentError(problem, component=tried[0], hint=hint)

    if isinstance(module, KernelAttention):
        check_components(module, x, past=past, classes=classes)
    output = _computed(module, x)
    if not bool(output.isfinite().all()):
        row, token, feature = (~output.isfinite()).nonzero()[0].tolist()
        value = float(output[row, token, feature])
        refuse(f"the attention gives {value} for finite tokens, first at position {token} of row {row}")
    if not torch.equal(_computed(module, x), output):
        hint = "keep nothing between two calls, and draw no random numbers"
        refuse("it gives other numbers for the same tokens when it computes again", hint)
    tokens = x.detach().clone().requires_grad_()
    for name in _without_gradient(lambda: module(tokens), {**dict(module.named_parameters()), "the tokens": tokens}):
        refuse(f"what the attention gives depends on {name}, and has no gradient by it", _CUT)
    for known in PROPERTIES:
        if not known.rehearsed or (known.causal and not past):
            continue
        if known.paths and not isinstance(module, KernelAttention):
            continue
        assert known.results is not None
        with torch.no_grad():
            computed, expected = (result(module, x) for result in known.results)
        if bool((wrong := _differs(computed, expected)).any()):
            refuse(f"{known.missed}; first at position {int(wrong.nonzero()[:, -1].min())}")


def check_components(attention: KernelAttention, x: Tensor, *, past: bool, classes: Sequence[type]) -> None:
    """Check the components of an attention that are of these classes, on tokens (B, T, M); others count as right.

    Args:
        past: whether the attention is made to reach to the past only (`Settings.reach`).

    Raises:
        ComponentError: a component does not return what its class declares.
    """
    for component in _components_of(attention):
        if type(component) not in classes:
            continue
        match component:
            case KernelFunction():
                check_kernel(component, x.view(*x.shape[:2], attention.shape[0], -1).transpose(1, 2))
            case FilterFunction():
                check_filter(component, past=past)
            case PositionScheme():
                check_position(component, attention, x)
            case AbsoluteEncoding():
                check_encoding(component, x.size(-1))


def check_kernel(kernel: KernelFunction, x: Tensor) -> None:
    """Check that a kernel returns what its class declares, on projected tokens (B, H, T, D).

    Raises:
        ComponentError: it returns something else.
    """
    key = kernel.placed(x, TokenPositions(torch.arange(x.size(-2), device=x.device), None, 0))
    query = key[..., : max(1, x.size(-2) - 1), :]  # fewer than keys, so that mixing up the two shows
    # Each query is one of the keys, as may be so with a symmetric kernel.
    name = "log_weight" if kernel.weight(query, key) is None else "weight"
    compute = getattr(kernel, name)
    numbers = compute(query, key)
    if numbers is None:
        _refuse(kernel, "neither log_weight nor weight gives numbers", hint="define one of them")
    _check_shape(kernel, name, numbers, (*query.shape[:-1], key.size(-2)), broadcasts=False)
    if name == "log_weight":
        _check_logarithm(kernel, numbers)
    else:
        _check_numbers(kernel, name, numbers, ~numbers.isfinite(), "finite numbers")
    if (name == "log_weight") != (kernel.gives == "logarithm"):
        hint = "define weight" if name == "log_weight" else "write gives = 'weight', or 'signed weight'"
        _refuse(kernel, f"its class says that it gives a {kernel.gives}, and {name} gives numbers", hint=hint)
    if kernel.gives == "weight" and bool((numbers < 0).any()):
        problem = "its class says that it gives a weight, and some are below 0"
        _refuse(kernel, problem, hint="write gives = 'signed weight'")
    # By query and key separately, which come from one projection if the kernel is symmetric.
    leaves = {side: tokens.detach().clone().requires_grad_() for side, tokens in (("query", query), ("key", key))}
    for side in _without_gradient(lambda: compute(leaves["query"], leaves["key"]), leaves):
        _refuse(kernel, f"{name} depends on {side}, and has no gradient by it", hint=_CUT)


def check_filter(filter: FilterFunction, *, past: bool) -> None:
    """Check that a filter shows each query its own key, and hides what its class says that it hides.

    Args:
        past: whether it was made to reach to the past only (`Settings.reach`).

    Raises:
        ComponentError: it does not.
    """
    places = torch.tensor(_PLACES)
    query, key = places.unsqueeze(-1), places.unsqueeze(-2)
    visible = torch.ones(len(places), len(places), dtype=torch.bool)
    if (given := filter.visible(query, key)) is not None:
        _check_shape(filter, "visible", given, visible.shape)
        visible = given.expand_as(visible)
    if not bool(visible.diagonal().all()):
        at = int(places[~visible.diagonal()][0])
        _refuse(filter, f"visible hides the own key of a query at position {at}", hint="add `| (key == query)`")
    if past and not filter.sees_later and bool((later := visible & (key > query)).any()):
        i, j = (_PLACES[index] for index in later.nonzero()[0].tolist())
        problem = f"visible shows a query at position {i} the key at {j}, which stands after it, in a decoder"
        hint = "hide `key > query` where settings.reach is Reach.PAST, or write sees_later = True for encoders alone"
        _refuse(filter, problem, hint=hint)
    if not filter.limits and not bool(visible.all()):
        _refuse(filter, "its class says limits = False, and visible hides keys", hint="leave out limits")
    for query_part, key_part in product(_BLOCKS, _BLOCKS):
        queries, keys = _PLACES[query_part], _PLACES[key_part]
        seen = filter.seen(queries, keys)
        indices = range(len(keys))[seen] if isinstance(seen, slice) else seen
        missed = {*visible[query_part, key_part].any(0).nonzero().flatten().tolist()} - {*indices}
        if missed:
            problem = f"seen leaves out the key at {keys[min(missed)]}, which visible shows to a query of {queries}"
            _refuse(filter, problem, hint="leave out seen, or have it give every key that any of the queries sees")


def check_position(scheme: PositionScheme, attention: KernelAttention, x: Tensor) -> None:
    """Check that the factor of a position scheme is a number for each pair, in an attention over tokens (B, T, M).

    Raises:
        ComponentError: it is not.
    """
    projected = attention._project(x, None)
    factor = scheme.log_weight(projected.raw, projected.at_query, projected.at_key)
    if factor is not None:
        expected = (*projected.raw.shape[:3], x.size(1))
        _check_shape(scheme, "log_weight", factor, expected)
        _check_logarithm(scheme, factor.expand(expected))


def check_encoding(encoding: AbsoluteEncoding, width: int) -> None:
    """Check that an encoding gives a vector for each position, independent of other positions in the call.

    Raises:
        ComponentError: it does not.
    """
    vectors = encoding(torch.arange(12))
    _check_shape(encoding, "forward", vectors, (12, width), broadcasts=False)
    if bool(_differs(encoding(torch.arange(4, 12)), vectors[4:]).any()):
        problem = "forward gives another vector for a position that stands at another index"
        _refuse(encoding, problem, hint="compute it from `positions` alone, which do not begin at 0 in cached decoding")


def _components_of(attention: KernelAttention) -> list[Any]:
    single = [attention.kernel, attention.normaliser, attention.value_function, attention.filter, attention.encoding]
    return [*single, *attention.positions.values()]


def _differs(computed: Tensor, expected: Tensor) -> Tensor:
    """Return whether tokens (…, T, M) differ by more than a hundredth, or are NaN, (…, T).

    Rounding in float32 is far below that, and reading another token changes an output by about its own size.
    """
    return ~((computed - expected).abs().amax(-1) <= 1e-2 * expected.abs().amax(-1))


@torch.no_grad()
def _computed(module: nn.Module, x: Tensor) -> Tensor:
    output: Tensor = module(x)
    return output


def _without_gradient(compute: Callable[[], Tensor], sources: Mapping[str, Tensor]) -> Iterator[str]:
    """Yield the names of the sources that the numbers depend on, but have no gradient by."""
    with torch.enable_grad():
        numbers = compute()
        gradients: Sequence[Tensor | None] = (None,) * len(sources)
        if numbers.requires_grad:
            gradients = torch.autograd.grad(numbers.sum(), list(sources.values()), allow_unused=True)
    with torch.no_grad():
        numbers = compute()  # again, since without a gradient another path may be the faster one
        for (name, source), gradient in zip(sources.items(), gradients, strict=True):
            if gradient is None:
                before = source.clone()
                source.add_(torch.linspace(0.1, 0.3, source.numel(), dtype=source.dtype).view_as(source))
                moved = compute()
                source.copy_(before)
                if not torch.equal(moved.nan_to_num(), numbers.nan_to_num()):
                    yield name


def _check_shape(component: Word, name: str, numbers: Any, expected: Sequence[int], *, broadcasts: bool = True) -> None:
    shape = tuple(numbers.shape) if isinstance(numbers, Tensor) else None
    aligned = zip(reversed(shape or ()), reversed(expected), strict=False)
    fits = shape is not None and len(shape) <= len(expected) and all(size in (1, wanted) for size, wanted in aligned)
    if not (fits if broadcasts else shape == tuple(expected)):
        problem = f"{name} gives {type(numbers).__name__ if shape is None else shape}"
        allowed = f"{tuple(expected)}, or what broadcasts to it" if broadcasts else f"{tuple(expected)}"
        _refuse(component, problem, allowed=allowed)


def _check_logarithm(component: Word, numbers: Tensor) -> None:
    # Hidden pairs count too: adding -inf to NaN or infinity does not hide them.
    _check_numbers(component, "log_weight", numbers, numbers.isnan() | (numbers == torch.inf), "finite, or -inf")


def _check_numbers(component: Word, name: str, numbers: Tensor, wrong: Tensor, allowed: str) -> None:
    if bool(wrong.any()):
        *_, i, j = pair = wrong.nonzero()[0].tolist()
        problem = f"{name} gives {float(numbers[tuple(pair)])} for a query at position {i} and a key at {j}"
        _refuse(component, problem, allowed=allowed)


def _refuse(component: Word, problem: str, *, allowed: str | None = None, hint: str | None = None) -> NoReturn:
    raise ComponentError(problem, component=type(component), allowed=allowed, hint=hint)

"""Whether a component gives what its interface asks for (`kdx.attention.interfaces`), and what its class declares.

These checks are quick, and each says what is wrong. A sweep makes them before it starts, `cases` before all others.
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
"""Positions of a filter's tokens: padding to the left, and what a memory holds, may be before 0."""
_BLOCKS = (slice(0, 13), slice(0, 4), slice(4, 9), slice(8, 9), slice(12, 13))
"""Some of them, as blocks, a memory and a cache take them."""

_CUT = "look for detach, data, no_grad, item and round"


def rehearse(module: nn.Module, x: Tensor, *, past: bool, classes: Sequence[type]) -> None:
    """Check in the number format of a run that self-attention, or another mixer, makes no table wrong.

    Its numbers are finite, the same when it computes again, and have a gradient by all that they depend on; and it has
    the properties that are `rehearsed`. Of a component that reads further than it may, its cell would be the best.

    Args:
        x: tokens (B, T, M), two rows or more.
        past: whether it is of a decoder.
        classes: of the components that are tried; others are right.

    Raises:
        ComponentError: one of this does not hold.
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
    """Check the components of an attention that are of these classes, on tokens (B, T, M); others are right.

    Args:
        past: whether the attention is made to reach to the past only (`Settings.reach`).

    Raises:
        ComponentError: one of them gives something else than its class says.
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
    """Check that a kernel gives what its class says, from projected tokens (B, H, T, D).

    Raises:
        ComponentError: it gives something else.
    """
    key = kernel.placed(x, TokenPositions(torch.arange(x.size(-2), device=x.device), None, 0))
    query = key[..., : max(1, x.size(-2) - 1), :]  # fewer than keys, so that the two are told apart
    # Each query is one of the keys, as it may be where the kernel is symmetric.
    name = "log_weight" if kernel.weight(query, key) is None else "weight"
    if getattr(kernel, name)(query, key) is None:
        _refuse(kernel, "neither log_weight nor weight gives numbers", hint="define one of them")
    expected = (*query.shape[:-1], key.size(-2))
    numbers = _call(kernel, name, query, key, expected=expected, dtypes=_dtypes(x), exactly=True)
    logarithm = name == "log_weight"
    wrong = _no_logarithm(numbers) if logarithm else ~numbers.isfinite()
    _check_numbers(kernel, name, numbers, wrong, "finite numbers" + ", and -inf" * logarithm)
    if logarithm != (kernel.gives == "logarithm"):
        hint = "define weight" if logarithm else "write gives = 'weight', or 'signed weight'"
        _refuse(kernel, f"its class says that it gives a {kernel.gives}, and {name} gives numbers", hint=hint)
    if kernel.gives == "weight" and bool((numbers < 0).any()):
        problem = "its class says that it gives a weight, and some are below 0"
        _refuse(kernel, problem, hint="write gives = 'signed weight'")
    # Of each for itself, since both are of one projection where the kernel is symmetric.
    leaves = {side: tokens.detach().clone().requires_grad_() for side, tokens in (("query", query), ("key", key))}
    for side in _without_gradient(lambda: getattr(kernel, name)(leaves["query"], leaves["key"]), leaves):
        _refuse(kernel, f"{name} depends on {side}, and has no gradient by it", hint=_CUT)


def check_filter(filter: FilterFunction, *, past: bool) -> None:
    """Check that a filter leaves a query its own key, and hides what its class says that it hides.

    Args:
        past: whether it was made to reach to the past only (`Settings.reach`).

    Raises:
        ComponentError: it does not.
    """
    if type(filter).visible is FilterFunction.visible:
        _refuse(filter, "its class does not define visible", hint="define visible(self, query, key)")
    places = torch.tensor(_PLACES)
    query, key = places.unsqueeze(-1), places.unsqueeze(-2)
    visible, later = _visible(filter, query, key), key > query
    if not bool(visible.diagonal().all()):
        at = int(places[~visible.diagonal()][0])
        _refuse(filter, f"visible hides the own key of a query at position {at}", hint="add `| (key == query)`")
    rows = torch.stack([places + 1, places])
    if not torch.equal(_visible(filter, rows.unsqueeze(-1), rows.unsqueeze(-2))[1], visible):
        problem = "visible says of positions (B, T) of several rows another thing than of each row's (T,)"
        _refuse(filter, problem, hint="compare `query` and `key` as they are given, (…, Tq, 1) and (…, 1, Tk)")
    if past and not filter.sees_later and bool((visible & later).any()):
        i, j = (_PLACES[index] for index in (visible & later).nonzero()[0].tolist())
        problem = f"visible shows a query at position {i} the key at {j}, which stands after it, in a decoder"
        hint = "hide `key > query` where settings.reach is Reach.PAST, or write sees_later = True for encoders alone"
        _refuse(filter, problem, hint=hint)
    if not filter.limits and not bool(visible.all()):
        _refuse(filter, "its class says limits = False, and visible hides keys", hint="leave out limits")
    for queries, keys in product(_BLOCKS, _BLOCKS):
        _check_seen(filter, _PLACES[queries], _PLACES[keys], visible[queries, keys])
    score = torch.randn(2, 2, *visible.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for name, arguments in {"log_weight": (score, None), "weight": (None, score.exp())}.items():
        chosen = _call(filter, "chosen", *arguments, visible, expected=score.shape, dtypes=(torch.bool,))
        if chosen is not None and not bool((chosen & visible).any(-1).all()):
            _refuse(filter, f"chosen hides all keys from a query, by {name}", hint="leave each query a key")


def check_position(scheme: PositionScheme, attention: KernelAttention, x: Tensor) -> None:
    """Check that a position scheme gives what its class says, in an attention that has it, of tokens (B, T, M).

    Raises:
        ComponentError: it gives something else.
    """
    place = TokenPositions(torch.arange(x.size(1), device=x.device), attention.encoding, 0)
    heads, width = attention.shape
    projected = x[..., :width].unsqueeze(1).expand(-1, heads, -1, -1).contiguous()
    for name, tokens in {"features": x, "projected": projected, "query": projected, "key": projected}.items():
        _call(scheme, name, tokens, place, expected=tokens.shape, dtypes=(tokens.dtype,), exactly=True)
    if scheme.reads:
        read: Any = scheme.of_tokens(x)
        if not isinstance(read, Tensor) or read.dim() != 4 or read.shape[:3] != projected.shape[:3]:
            allowed = f"(B, H, T, C), here ({', '.join(map(str, projected.shape[:3]))}, C)"
            _refuse(scheme, f"of_tokens gives {_kind(read)} for tokens {_kind(x)}", allowed=allowed)
    given = attention._project(x, None)
    places = (given.at_query, given.at_key)
    # A bias that is computed from integers has torch's own dtype.
    dtypes, expected = (*_dtypes(x), torch.float32), (*given.raw.shape[:3], x.size(1))
    factor = _call(scheme, "log_weight", given.raw, *places, expected=expected, dtypes=dtypes)
    if factor is None:
        return
    # Of hidden pairs, too: NaN and infinity stay what they are when -inf is added.
    _check_numbers(scheme, "log_weight", factor, _no_logarithm(factor), "finite numbers, and -inf")


def check_encoding(encoding: AbsoluteEncoding, width: int) -> None:
    """Check that an encoding gives a vector for each position, whatever others stand before it in a call.

    Raises:
        ComponentError: it does not.
    """
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    vectors = _call(encoding, "forward", torch.arange(12), expected=(12, width), dtypes=dtypes, exactly=True)
    if bool(_differs(encoding(torch.arange(4, 12)), vectors[4:]).any()):
        problem = "forward gives another vector for a position that stands at another index"
        _refuse(encoding, problem, hint="compute it from `positions` alone, which do not begin at 0 in cached decoding")


def _differs(computed: Tensor, expected: Tensor) -> Tensor:
    """Return whether tokens (…, T, M) differ by more than a hundredth, or are NaN, (…, T).

    Rounding in float32 is far below it, and a token that is read changes an output by about its own size.
    """
    return ~((computed - expected).abs().amax(-1) <= 1e-2 * expected.abs().amax(-1))


@torch.no_grad()
def _computed(module: nn.Module, x: Tensor) -> Tensor:
    output: Tensor = module(x)
    return output


def _without_gradient(compute: Callable[[], Tensor], sources: Mapping[str, Tensor]) -> Iterator[str]:
    """Yield the names of those leaves that the numbers depend on without a gradient by them."""
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


def _visible(filter: FilterFunction, query: Tensor, key: Tensor) -> Tensor:
    """Return what a filter says of all pairs, (…, Tq, Tk)."""
    expected = (*query.shape[:-1], key.size(-1))
    visible: Tensor | None = _call(filter, "visible", query, key, expected=expected, dtypes=(torch.bool,))
    return torch.ones(expected, dtype=torch.bool) if visible is None else visible


def _check_seen(filter: FilterFunction, queries: range, keys: range, visible: Tensor) -> None:
    seen = filter.seen(queries, keys)
    indices = range(len(keys))[seen] if isinstance(seen, slice) else seen
    missed = sorted({*visible.any(0).nonzero().flatten().tolist()} - {*indices})
    if missed:
        problem = (
            f"seen leaves out the key at {keys[missed[0]]}, which visible shows to one of the queries at {queries}"
        )
        _refuse(filter, problem, hint="leave out seen, or have it give every key that any of the queries sees")


def _call(
    component: Word,
    name: str,
    *arguments: Any,
    expected: Sequence[int],
    dtypes: Sequence[torch.dtype],
    exactly: bool = False,
) -> Any:
    """Return what a method gives, a tensor expanded to the expected shape; None if it gives None.

    Raises:
        ComponentError: it gives something else than a tensor of the shape, or one that broadcasts to it unless
            `exactly`, and of one of the dtypes.
    """
    numbers = getattr(component, name)(*arguments)
    if numbers is None and not exactly:
        return None
    right = isinstance(numbers, Tensor) and numbers.dtype in dtypes
    if not right or not (numbers.shape == tuple(expected) if exactly else _broadcasts(numbers, expected)):
        inputs = [_kind(argument) for argument in arguments if isinstance(argument, Tensor)]
        what = "" if exactly else ", or what broadcasts to it"
        allowed = f"{' or '.join(map(str, dict.fromkeys(dtypes)))} {tuple(expected)}{what}"
        _refuse(component, f"{name} gives {_kind(numbers)} for {' and '.join(inputs)}", allowed=allowed)
    return numbers.expand(expected)


def _check_numbers(component: Word, name: str, numbers: Tensor, wrong: Tensor, allowed: str) -> None:
    if bool(wrong.any()):
        *_, i, j = pair = wrong.nonzero()[0].tolist()
        problem = f"{name} gives {float(numbers[tuple(pair)])} for a query at position {i} and a key at {j}"
        _refuse(component, problem, allowed=allowed)


def _no_logarithm(numbers: Tensor) -> Tensor:
    return numbers.isnan() | (numbers == torch.inf)


def _components_of(attention: KernelAttention) -> list[Any]:
    """Return the components that an attention is made of."""
    single = [attention.kernel, attention.normaliser, attention.value_function, attention.filter, attention.encoding]
    return [*single, *attention.positions.values()]


def _broadcasts(numbers: Tensor, expected: Sequence[int]) -> bool:
    sizes = zip(reversed(numbers.shape), reversed(expected), strict=False)
    return numbers.dim() <= len(expected) and all(size in (1, wanted) for size, wanted in sizes)


def _dtypes(x: Tensor) -> tuple[torch.dtype, torch.dtype]:
    """Return what may be computed from tokens: numbers of their dtype, or upcast ones (`interfaces.upcast`)."""
    return x.dtype, torch.promote_types(x.dtype, torch.float32)


def _kind(value: Any) -> str:
    return f"{value.dtype} {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def _refuse(component: Word, problem: str, *, allowed: str | None = None, hint: str | None = None) -> NoReturn:
    raise ComponentError(problem, component=type(component), allowed=allowed, hint=hint)

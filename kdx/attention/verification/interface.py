"""Whether a component gives what its interface asks for (`kdx.attention.interfaces`), and what its class declares.

These checks are quick, and each says what is wrong. The properties of an attention that has the component are checked
in `kdx.attention.verification.properties`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from kdx.attention.cache import Cache
from kdx.attention.interfaces import (
    AbsoluteEncoding,
    FilterFunction,
    KernelFunction,
    PositionScheme,
    TokenPositions,
    Word,
)
from kdx.attention.module import KernelAttention
from kdx.errors import ComponentError

_PLACES = range(-3, 10)
"""Positions of a filter's tokens: padding to the left, and what a memory holds, may be before 0."""
_BLOCKS = (slice(0, 13), slice(0, 4), slice(4, 9), slice(8, 9), slice(12, 13))
"""Some of them, as blocks, a memory and a cache take them."""


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


def check_reads(module: nn.Module, x: Tensor, *, past: bool, classes: Sequence[type]) -> None:
    """Check what self-attention reads: a token's own row, and in a decoder no later token; and that it gives numbers.

    A component that reads further makes its cell the best of a table, and wrong; one whose fast path is another thing
    than its formula makes it wrong, too. In a decoder a row must give the same in two pieces, of which the second has
    the first in its cache, as in one: then no token depends on later ones, on the length of the row, or on the index at
    which it stands in a call.

    Args:
        x: tokens (B, T, M), two rows or more.
        past: whether it is of a decoder.
        classes: of the components that are tried; others are right.

    Raises:
        ComponentError: it reads something else, or gives a number that is not finite.
    """
    components = _components_of(module) if isinstance(module, KernelAttention) else [module]
    tried = [type(component) for component in components if type(component) in classes]
    if not tried:
        return
    fault = partial(ComponentError, component=tried[0])
    with torch.no_grad():
        output = module(x)
        if not bool(output.isfinite().all()):
            row, token, _ = (~output.isfinite()).nonzero()[0].tolist()
            value = float(output[row, token][~output[row, token].isfinite()][0])
            raise fault(f"the attention gives {value} for finite tokens, first at position {token} of row {row}")
        others = torch.cat([x[:1], torch.flip(x[1:], [2])])
        if bool(_differs(module(others)[:1], output[:1]).any()):
            problem = "what the attention gives for a row depends on the other rows of the batch"
            raise fault(problem, hint="take no mean or maximum over the first dimension")
        if isinstance(module, KernelAttention):
            module.path, path = "literal", module.path
            apart = _differs(module(x), output)
            module.path = path
            if bool(apart.any()):
                problem = (
                    f"what the attention gives at position {int(apart.nonzero()[0])} is not what its formula gives"
                )
                hint = "look at what makes it fast: dot_product, feature_map, triangular, limits, weighs, reads_content"
                raise fault(problem, hint=hint)
        if past:
            half, cache = x.size(1) // 2, Cache()
            pieces = [module(piece, cache=cache) for piece in (x[:, :half], x[:, half:])]
            changed = _differs(torch.cat(pieces, 1), output)
            if bool(changed.any()):
                token = int(changed.nonzero()[0])
                what, hint = "tokens after it, or on their number", "look for roll, flip, cumsum, and means over time"
                if token >= half:
                    what = "how many tokens are computed with it"
                    hint = "find a token by its position, not by its index, which is another one in cached decoding"
                raise fault(f"what the attention of a decoder gives at position {token} depends on {what}", hint=hint)


def check_kernel(kernel: KernelFunction, x: Tensor) -> None:
    """Check that a kernel gives what its class says, from projected tokens (B, H, T, D).

    Raises:
        ComponentError: it gives something else.
    """
    key = kernel.placed(x, TokenPositions(torch.arange(x.size(-2), device=x.device), None, 0))
    query = key[..., : max(1, x.size(-2) - 1), :]  # fewer than keys, so that the two are told apart
    # Each query is one of the keys, as it may be where the kernel is symmetric.
    name = "log_weight" if kernel.weight(query, key) is None else "weight"
    compute = getattr(kernel, name)
    if compute(query, key) is None:
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
    _check_gradient(kernel, name, compute, {"query": query, "key": key})


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
    _check_gradient(scheme, "log_weight", lambda query: scheme.log_weight(query, *places), {"query": given.raw})


def check_encoding(encoding: AbsoluteEncoding, width: int) -> None:
    """Check that an encoding gives a vector for each position, whatever others stand before it in a call.

    Raises:
        ComponentError: it does not.
    """
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    vectors = _call(encoding, "forward", torch.arange(12), expected=(12, width), dtypes=dtypes, exactly=True)
    if bool(_differs(encoding(torch.arange(4, 12)).unsqueeze(0), vectors[4:].unsqueeze(0)).any()):
        problem = "forward gives another vector for a position that stands at another index"
        _refuse(encoding, problem, hint="compute it from `positions` alone, which do not begin at 0 in cached decoding")


def _differs(computed: Tensor, expected: Tensor) -> Tensor:
    """Return whether outputs (B, T, M) differ at each position by more than a hundredth, or are NaN, (T,).

    Rounding in float32 is far below it, and a token that is read changes an output by about its own size.
    """
    return ~((computed - expected).abs().amax(-1) <= 1e-2 * expected.abs().amax(-1)).all(0)


def _visible(filter: FilterFunction, query: Tensor, key: Tensor) -> Tensor:
    """Return what a filter says of all pairs, (…, Tq, Tk)."""
    expected = (*query.shape[:-1], key.size(-1))
    visible: Tensor | None = _call(filter, "visible", query, key, expected=expected, dtypes=(torch.bool,))
    return torch.ones(expected, dtype=torch.bool) if visible is None else visible


def _check_seen(filter: FilterFunction, queries: range, keys: range, visible: Tensor) -> None:
    seen: Any = filter.seen(queries, keys)
    given = list(range(len(keys))[seen]) if isinstance(seen, slice) else seen
    if not isinstance(given, list) or not all(type(index) is int and 0 <= index < len(keys) for index in given):
        problem = f"seen gives {seen!r} for queries at {queries} and keys at {keys}"
        _refuse(filter, problem, allowed=f"a slice, or indices from 0 to {len(keys) - 1}")
    missed = sorted({*visible.any(0).nonzero().flatten().tolist()} - {*given})
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
        ComponentError: it changes its arguments, gives something else than a tensor of the shape, or one that
            broadcasts to it unless `exactly`, and of one of the dtypes, or other numbers when it is called again.
    """
    compute = getattr(component, name)
    inputs = [argument for argument in arguments if isinstance(argument, Tensor)]
    before = [tensor.detach().clone() for tensor in inputs]
    numbers, again = compute(*arguments), compute(*arguments)
    if not all(map(torch.equal, before, inputs)):
        problem = "it changes the tensors that it is given"
        _refuse(component, problem, hint="compute new numbers, without operations in place such as mul_")
    if numbers is None and not exactly:
        return None
    right = isinstance(numbers, Tensor) and numbers.dtype in dtypes
    if not right or not (numbers.shape == tuple(expected) if exactly else _broadcasts(numbers, expected)):
        problem = f"{name} gives {_kind(numbers)} for {' and '.join(map(_kind, inputs))}"
        what = "" if exactly else ", or what broadcasts to it"
        allowed = f"{' or '.join(map(str, dict.fromkeys(dtypes)))} {tuple(expected)}{what}"
        _refuse(component, problem, allowed=allowed)
    if not isinstance(again, Tensor) or not torch.equal(numbers.nan_to_num(), again.nan_to_num()):
        problem = f"{name} gives other numbers for the same tokens when it is asked again"
        _refuse(component, problem, hint="keep nothing between two calls, and draw no random numbers")
    return numbers.expand(expected)


def _check_gradient(component: Word, name: str, compute: Callable[..., Any], inputs: Mapping[str, Tensor]) -> None:
    """Check that numbers have a gradient by each input, and by all that the component learns, that they depend on."""
    leaves = {of: tensor.detach().clone().requires_grad_() for of, tensor in inputs.items()}
    sources = {**leaves, **dict(component.named_parameters())}
    with torch.enable_grad():
        numbers = compute(**leaves)
        gradients: Sequence[Tensor | None] = (None,) * len(sources)
        if numbers.requires_grad:
            gradients = torch.autograd.grad(numbers.sum(), list(sources.values()), allow_unused=True)
    with torch.no_grad():
        for (of, source), gradient in zip(sources.items(), gradients, strict=True):
            if gradient is not None:
                continue
            before = source.clone()
            source.add_(torch.linspace(0.1, 0.3, source.numel(), dtype=source.dtype).view_as(source))
            moved = compute(**leaves)
            source.copy_(before)
            if not torch.equal(moved.nan_to_num(), numbers.nan_to_num()):
                problem = f"{name} depends on {of}, and has no gradient by it"
                _refuse(component, problem, hint="look for detach, data, no_grad, item and round")


def _check_numbers(component: Word, name: str, numbers: Tensor, wrong: Tensor, allowed: str) -> None:
    if bool(wrong.any()):
        *_, i, j = pair = wrong.nonzero()[0].tolist()
        problem = f"{name} gives {float(numbers[tuple(pair)])} for a query at position {i} and a key at {j}"
        _refuse(component, problem, allowed=allowed)


def _no_logarithm(numbers: Tensor) -> Tensor:
    return numbers.isnan() | (numbers == torch.inf)


def _components_of(attention: KernelAttention) -> list[Any]:
    own = [attention.kernel, attention.normaliser, attention.value_function, attention.filter, attention.encoding]
    return [*own, *attention.positions.values()]


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

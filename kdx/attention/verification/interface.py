"""Whether a part gives what its interface asks for (`kdx.attention.interfaces`), and what its class says of it.

What comes of it in an attention is checked elsewhere (`kdx.attention.verification.component`). These checks are quick,
and each says what is wrong.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NoReturn, TypeVar

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
from kdx.errors import PartError

T = TypeVar("T")

_PLACES = range(-3, 10)
"""Where tokens of a filter stand: padding to the left, and what a memory holds, may be before 0."""
_SOME = (slice(0, 13), slice(0, 4), slice(4, 9), slice(8, 9), slice(12, 13))
"""Of them, as blocks, a memory and a cache take them."""


def check_kernel(kernel: KernelFunction, x: Tensor) -> None:
    """Whether a kernel gives what its class says, from projected tokens (B, H, T, D).

    Raises:
        PartError: it gives something else.
    """
    key = kernel.placed(x, TokenPositions(torch.arange(x.size(-2), device=x.device), None, 0))
    query = key[..., : max(1, x.size(-2) - 1), :]  # fewer than keys, so that the two are told apart
    log_weight, weight = _unchanged(kernel, lambda: (kernel.log_weight(query, key), kernel.weight(query, key)), key)
    found = log_weight if weight is None else weight
    if found is None:
        _refuse(kernel, "neither log_weight nor weight gives numbers", hint="define one of them")
    name = "log_weight" if weight is None else "weight"
    expected = (*query.shape[:-1], key.size(-2))
    _check_tensor(kernel, name, found, expected, _dtypes(x), query, key, exactly=True)
    again = kernel.log_weight(query, key) if weight is None else kernel.weight(query, key)
    _check_again(kernel, name, found, again)
    # Each query is one of the keys, as it may be where the kernel is symmetric.
    wrong = (found != found) | (found == torch.inf) if weight is None else ~found.isfinite()
    _check_numbers(
        kernel, name, found.expand(expected), wrong.expand(expected), "finite numbers" + ", and -inf" * (weight is None)
    )
    if weight is None or kernel.gives == "logarithm":
        if (weight is None) != (kernel.gives == "logarithm"):
            hint = "write gives = 'weight', or 'signed weight'" if weight is not None else "define weight"
            _refuse(kernel, f"its class says that it gives a {kernel.gives}, and {name} gives numbers", hint=hint)
    elif kernel.gives == "weight" and bool((weight < 0).any()):
        problem = "its class says that it gives a weight, and some are below 0"
        _refuse(kernel, problem, hint="write gives = 'signed weight'")
    compute: Any = kernel.log_weight if weight is None else kernel.weight
    _check_gradient(kernel, name, compute, query=query, key=key)


def check_filter(filter: FilterFunction, *, past: bool) -> None:
    """Whether a filter is one of pairs, leaves a query its own key, and hides what its class says that it hides.

    Args:
        past: whether it was made to reach to the past only (`Settings.reach`).

    Raises:
        PartError: it does not.
    """
    if type(filter).visible is FilterFunction.visible:
        _refuse(filter, "its class does not define visible", hint="define visible(self, query, key)")
    places = torch.tensor(_PLACES)
    query, key = places.unsqueeze(-1), places.unsqueeze(-2)
    visible = _visible(filter, query, key)
    _check_again(filter, "visible", visible, _visible(filter, query, key))
    if not bool(visible.diagonal().all()):
        at = int(places[~visible.diagonal()][0])
        _refuse(filter, f"visible hides the own key of a query at position {at}", hint="add `| (key == query)`")
    for asked, seen in product(_SOME, _SOME):
        some = _visible(filter, query[asked], key[:, seen])
        if not torch.equal(some, visible[asked, seen]):
            problem = "visible says of some queries and keys alone another thing than of them among others"
            hint = (
                "a pair is seen or not by where its two tokens stand, not by how many there are: a cache has one query"
            )
            _refuse(filter, problem, hint=hint)
    rows = torch.stack([places, places + 1])
    of_rows = _visible(filter, rows.unsqueeze(-1), rows.unsqueeze(-2))
    if not torch.equal(of_rows, torch.stack([_visible(filter, row[:, None], row[None]) for row in rows])):
        problem = "visible says of positions (B, T) of several rows another thing than of each row's (T,)"
        _refuse(filter, problem, hint="compare `query` and `key` as they are given, (…, Tq, 1) and (…, 1, Tk)")
    later = key > query
    if past and not filter.sees_later and bool((visible & later).any()):
        i, j = (_PLACES[one] for one in (visible & later).nonzero()[0].tolist())
        problem = f"visible shows a query at position {i} the key at {j}, which stands after it, in a decoder"
        hint = (
            "hide `key > query` where settings.reach is Reach.PAST, or write sees_later = True: then no decoder has it"
        )
        _refuse(filter, problem, hint=hint)
    if filter.triangular and not torch.equal(visible, ~later):
        problem = "its class says triangular = True, and visible is not the lower triangle, `key <= query`"
        _refuse(filter, problem, hint="leave out triangular")
    if not filter.limits and not bool(visible.all()):
        problem = "its class says limits = False, and visible hides keys"
        _refuse(filter, problem, hint="leave out limits")
    _check_seen(filter, visible)
    _check_chosen(filter, visible)


def _visible(filter: FilterFunction, query: Tensor, key: Tensor) -> Tensor:
    """What a filter says of all pairs, (…, Tq, Tk)."""
    found: Any = _unchanged(filter, lambda: filter.visible(query, key), query, key)
    expected = (*query.shape[:-1], key.size(-1))
    if found is None:
        return torch.ones(expected, dtype=torch.bool)
    _check_tensor(filter, "visible", found, expected, (torch.bool,), query, key)
    whole: Tensor = found.expand(expected)
    return whole


def _check_seen(filter: FilterFunction, visible: Tensor) -> None:
    for asked, seen in product(_SOME, _SOME):
        queries, keys = (_PLACES[one] for one in (asked, seen))
        found: Any = filter.seen(queries, keys)
        given = list(range(len(keys))[found]) if isinstance(found, slice) else found
        if not isinstance(given, list) or not all(type(one) is int and 0 <= one < len(keys) for one in given):
            problem = f"seen gives {found!r} for queries at {queries} and keys at {keys}"
            _refuse(filter, problem, allowed=f"a slice, or indices from 0 to {len(keys) - 1}")
        wanted = visible[asked, seen].any(0).nonzero().flatten().tolist()
        if missed := sorted({*wanted} - {*given}):
            problem = (
                f"seen leaves out the key at {keys[missed[0]]}, which visible shows to one of the queries at {queries}"
            )
            _refuse(filter, problem, hint="leave out seen, or have it give every key that any of the queries sees")


def _check_chosen(filter: FilterFunction, visible: Tensor) -> None:
    score = torch.randn(2, 2, *visible.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    hidden = score.masked_fill(~visible, 9.0)
    for name, of in {
        "log_weight": lambda x, seen: filter.chosen(x, None, seen),
        "weight": lambda x, seen: filter.chosen(None, x.exp(), seen),
    }.items():
        found = _chosen(filter, of, score, visible)
        if found is None:
            continue
        if not filter.reads_content:
            problem = "chosen hides keys by their weights, and its class does not say so"
            _refuse(filter, problem, hint="write reads_content = True")
        _check_again(filter, "chosen", found, _chosen(filter, of, score, visible))
        if not bool((found & visible).any(-1).all()):
            _refuse(filter, f"chosen hides all keys from a query, by {name}", hint="leave each query a key")
        alone = _chosen(filter, of, score[1:], visible)
        if alone is not None and not torch.equal(alone & visible, found[1:] & visible):
            problem = "chosen says of a row of the batch alone another thing than of it among others"
            _refuse(filter, problem, hint="look at the last dimension, the keys of one query, alone")
        last = _chosen(filter, of, score[..., -1:, :], visible[-1:])
        if last is not None and not torch.equal(last & visible[-1:], found[..., -1:, :] & visible[-1:]):
            problem = "chosen says of one query alone another thing than of it among others"
            _refuse(filter, problem, hint="look at the last dimension, the keys of one query, alone: a cache has one")
        other = _chosen(filter, of, hidden, visible)
        if other is not None and not torch.equal(other & visible, found & visible):
            problem = "chosen depends on the weights of keys that are not visible"
            _refuse(filter, problem, hint="fill them in first: weight.masked_fill(~visible, -torch.inf)")


def _chosen(
    filter: FilterFunction, of: Callable[[Tensor, Tensor], Any], score: Tensor, visible: Tensor
) -> Tensor | None:
    found = _unchanged(filter, lambda: of(score, visible), score, visible)
    if found is None:
        return None
    _check_tensor(filter, "chosen", found, score.shape, (torch.bool,), score)
    whole: Tensor = found.expand(score.shape)
    return whole


def check_position(scheme: PositionScheme, attention: KernelAttention, x: Tensor) -> None:
    """Whether a position scheme gives what its class says, in an attention that has it, of tokens (B, T, M).

    Raises:
        PartError: it gives something else.
    """
    place = TokenPositions(torch.arange(x.size(1), device=x.device), attention.encoding, 0)
    heads, width = attention.shape
    projected = x[..., :width].unsqueeze(1).expand(-1, heads, -1, -1).contiguous()
    changes = {"features": (scheme.features, x), "projected": (scheme.projected, projected)}
    changes |= {"query": (scheme.query, projected), "key": (scheme.key, projected)}
    for name, (change, tokens) in changes.items():
        found = _unchanged(scheme, lambda change=change, tokens=tokens: change(tokens, place), tokens)  # type: ignore[misc]
        _check_tensor(scheme, name, found, tokens.shape, (tokens.dtype,), tokens, exactly=True)
        _check_again(scheme, name, found, change(tokens, place))
    if scheme.reads:
        read: Any = scheme.of_tokens(x)
        if not isinstance(read, Tensor) or read.dim() != 4 or read.shape[:3] != projected.shape[:3]:
            allowed = f"(B, H, T, C), here ({', '.join(map(str, projected.shape[:3]))}, C)"
            _refuse(scheme, f"of_tokens gives {_kind(read)} for tokens {_kind(x)}", allowed=allowed)
    given = attention._project(x, None)
    found = _unchanged(scheme, lambda: scheme.log_weight(given.raw, given.at_query, given.at_key), given.raw)
    if found is None:
        return
    if not scheme.weighs:
        problem = "its class says weighs = False, and log_weight gives numbers"
        _refuse(scheme, problem, hint="leave out weighs")
    expected = (*given.raw.shape[:3], x.size(1))
    # A bias that is computed from integers has torch's own dtype.
    _check_tensor(scheme, "log_weight", found, expected, (*_dtypes(x), torch.float32), given.raw)
    _check_again(scheme, "log_weight", found, scheme.log_weight(given.raw, given.at_query, given.at_key))
    # Of hidden pairs, too: NaN and infinity stay what they are when -inf is added.
    found = found.expand(expected)
    _check_numbers(scheme, "log_weight", found, (found != found) | (found == torch.inf), "finite numbers, and -inf")
    _check_gradient(
        scheme, "log_weight", lambda query: scheme.log_weight(query, given.at_query, given.at_key), query=given.raw
    )


def check_encoding(encoding: AbsoluteEncoding, width: int) -> None:
    """Whether an encoding gives a vector for each position, and by the position alone.

    Raises:
        PartError: it does not.
    """
    places = torch.arange(12)
    found = _unchanged(encoding, lambda: encoding(places), places)
    floating = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    _check_tensor(encoding, "forward", found, (12, width), floating, places, exactly=True)
    _check_again(encoding, "forward", found, encoding(places))
    rows = torch.stack([places[2:5], places[7:10]])
    if not torch.equal(encoding(places[7:8]), found[7:8]) or not torch.equal(encoding(rows), found[rows]):
        problem = "forward gives another vector for some positions alone than for them among others"
        _refuse(encoding, problem, hint="let a vector depend on its position alone: a cache has one at a time")


def check_parts(attention: KernelAttention, x: Tensor, *, past: bool, classes: Sequence[type]) -> None:
    """Those parts of an attention that are of these classes, on tokens (B, T, M); others are right.

    Args:
        past: whether the attention is made to reach to the past only.

    Raises:
        PartError: one of them gives something else than its class says.
    """
    heads = attention.shape[0]
    for part in _parts_of(attention):
        if type(part) not in classes:
            continue
        match part:
            case KernelFunction():
                check_kernel(part, x.view(*x.shape[:2], heads, -1).transpose(1, 2))
            case FilterFunction():
                check_filter(part, past=past)
            case PositionScheme():
                check_position(part, attention, x)
            case AbsoluteEncoding():
                check_encoding(part, x.size(-1))


def check_reads(module: nn.Module, x: Tensor, *, past: bool, classes: Sequence[type]) -> None:
    """Whether self-attention reads what it may, and gives numbers: a token's own row, and in a decoder no later token.

    A part that reads further makes its cell the best of a table, and wrong.

    Args:
        x: tokens (B, T, M), two rows or more.
        past: whether it is of a decoder.
        classes: of the parts that are tried; others are right.

    Raises:
        PartError: it reads something else, or gives a number that is not finite.
    """
    parts = _parts_of(module) if isinstance(module, KernelAttention) else [module]
    own = [type(part) for part in parts if type(part) in classes]
    if not own:
        return
    fault = partial(PartError, part=own[0])
    with torch.no_grad():
        output = module(x)
        if not bool(output.isfinite().all()):
            row, token, _ = (~output.isfinite()).nonzero()[0].tolist()
            value = float(output[row, token][~output[row, token].isfinite()][0])
            raise fault(f"the attention gives {value} for finite tokens, first at position {token} of row {row}")
        # Rounding in float32 is far below it, and what is read changes a row by about its own size.
        bound = 1e-3 * float(output.abs().max())
        others = torch.cat([x[:1], torch.flip(x[1:], [2])])
        if float((module(others)[0] - output[0]).abs().max()) > bound:
            problem = "what the attention gives for a row depends on the other rows of the batch"
            raise fault(problem, hint="take no mean or maximum over the first dimension")
        half = x.size(1) // 2
        later = torch.cat([x[:, :half], torch.flip(x[:, half:], [2])], dim=1)
        changed = (module(later) - output)[:, :half].abs().amax(dim=(0, 2)) > bound
        if past and bool(changed.any()):
            token = int(changed.nonzero()[0])
            problem = f"what the attention of a decoder gives at position {token} depends on tokens after it"
            raise fault(problem, hint="look for roll, flip, cumsum, and means or maxima over time")


def _check_gradient(part: Word, name: str, compute: Callable[..., Any], **inputs: Tensor) -> None:
    """Whether numbers have a gradient by each input, and by all that the part learns, that they depend on."""
    leaves = {of: one.detach().clone().requires_grad_() for of, one in inputs.items()}
    sources = {**leaves, **dict(part.named_parameters())}
    with torch.enable_grad():
        found = compute(**leaves)
        gradients: Sequence[Tensor | None] = (None,) * len(sources)
        if found.requires_grad:
            gradients = torch.autograd.grad(found.sum(), list(sources.values()), allow_unused=True)
    with torch.no_grad():
        for (of, source), gradient in zip(sources.items(), gradients, strict=True):
            if gradient is not None:
                continue
            before = source.clone()
            source.add_(torch.linspace(0.1, 0.3, source.numel(), dtype=source.dtype).view_as(source))
            moved = compute(**leaves)
            source.copy_(before)
            if not torch.equal(moved.nan_to_num(), found.nan_to_num()):
                problem = f"{name} depends on {of}, and has no gradient by it"
                _refuse(part, problem, hint="look for detach, data, no_grad, item and round")


def _check_numbers(part: Word, name: str, found: Tensor, wrong: Tensor, allowed: str) -> None:
    if bool(wrong.any()):
        *_, i, j = pair = wrong.nonzero()[0].tolist()
        problem = f"{name} gives {float(found[tuple(pair)])} for a query at position {i} and a key at {j}"
        _refuse(part, problem, allowed=allowed)


def _parts_of(attention: KernelAttention) -> Iterator[Any]:
    yield from (attention.kernel, attention.normaliser, attention.value_function, attention.filter)
    yield from attention.positions.values()
    yield attention.encoding


def _unchanged(part: Word, compute: Callable[[], T], *inputs: Tensor) -> T:
    """What is computed, of inputs that must stay as they are."""
    before = [one.detach().clone() for one in inputs]
    found = compute()
    if not all(map(torch.equal, before, inputs)):
        problem = "it changes the tensors that it is given"
        _refuse(part, problem, hint="compute new numbers, without operations in place such as mul_")
    return found


def _check_tensor(
    part: Word,
    name: str,
    found: Any,
    expected: Sequence[int],
    dtypes: Sequence[torch.dtype],
    *inputs: Tensor,
    exactly: bool = False,
) -> None:
    """Whether it is a tensor of this shape, or one that broadcasts to it, and of one of these dtypes."""
    right = isinstance(found, Tensor) and found.dtype in dtypes
    if not right or not (found.shape == tuple(expected) if exactly else _broadcasts(found, expected)):
        problem = f"{name} gives {_kind(found)} for {' and '.join(map(_kind, inputs))}"
        what = "" if exactly else ", or what broadcasts to it"
        allowed = f"{' or '.join(map(str, dict.fromkeys(dtypes)))} {tuple(expected)}{what}"
        _refuse(part, problem, allowed=allowed)


def _broadcasts(found: Tensor, expected: Sequence[int]) -> bool:
    sizes = zip(reversed(found.shape), reversed(expected), strict=False)
    return found.dim() <= len(expected) and all(its in (1, size) for its, size in sizes)


def _check_again(part: Word, name: str, found: Any, again: Any) -> None:
    if not isinstance(again, Tensor) or not torch.equal(torch.nan_to_num(found), torch.nan_to_num(again)):
        problem = f"{name} gives other numbers for the same tokens when it is asked again"
        _refuse(part, problem, hint="keep nothing between two calls, and draw no random numbers")


def _dtypes(x: Tensor) -> tuple[torch.dtype, torch.dtype]:
    """What may be computed from tokens: numbers of their kind, or upcast ones (`kdx.attention.interfaces.upcast`)."""
    return x.dtype, torch.promote_types(x.dtype, torch.float32)


def _kind(found: Any) -> str:
    return f"{found.dtype} {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__


def _refuse(part: Word, problem: str, *, allowed: str | None = None, hint: str | None = None) -> NoReturn:
    raise PartError(problem, part=type(part), allowed=allowed, hint=hint)

"""The attentions whose properties are checked: several with each component, of kdx or custom.

`kdx verify` checks all components of kdx; `kdx verify --component` and `kdx.testing` check one component, which may be
custom. The tokens are random with a fixed seed.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from kdx.attention.families import FAMILIES
from kdx.attention.interfaces import (
    AbsoluteEncoding,
    FilterFunction,
    KernelFunction,
    NormaliserFunction,
    PositionScheme,
    ValueFunction,
    Word,
)
from kdx.attention.kernels import KERNELS
from kdx.attention.module import KernelAttention
from kdx.attention.verification.interface import rehearse
from kdx.attention.verification.properties import PROPERTIES, draw
from kdx.attention.verification.rounding import ROUNDINGS
from kdx.attention.verification.torch_state import torch_left_alone
from kdx.errors import KdxError
from kdx.vocabulary import Maps, OutputGate, Projection, QKNorm, Smoother, Symmetry, ValueProjection

AXES: Mapping[str, type[Word]] = {
    "kernel": KernelFunction,
    "position": PositionScheme,
    "value": ValueFunction,
    "filter": FilterFunction,
    "normaliser": NormaliserFunction,
    "encoding": AbsoluteEncoding,
}
"""Axis → the base class of its components, for each axis that is checked."""

WIDTH, HEADS, TOKENS = 16, 2, 9
# Enough for several blocks, and for causal sums over the features of every kernel that has a map.
LONG_BATCH, LONG = 2, 320


class _MasksAsQueries(TorchFunctionMode):
    """Turns a float32 mask into float64 where the queries are.

    A scheme may compute in float32 what it computes from integers. Beside float64 queries torch 2.13 reads such a mask
    wrongly on a CPU without AVX-512, and the scheme, whose runs are in float32, would be refused for that.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        mask = kwargs.get("attn_mask")
        if function is F.scaled_dot_product_attention and mask is not None and mask.is_floating_point():
            kwargs = {**kwargs, "attn_mask": mask.to(torch.promote_types(mask.dtype, args[0].dtype))}
        return function(*args, **kwargs)


def _readable_masks(module: KernelAttention) -> AbstractContextManager[object]:
    # Those of kdx have the format of the attention, and the mode would take a quarter of the time.
    custom = any(not type(part).__module__.startswith(("kdx.", "torch.")) for part in module.modules())
    return _MasksAsQueries() if custom else nullcontext()


class Finding(NamedTuple):
    """The error of one variant of an attention in one check."""

    check: str
    """Name of the property."""
    variant: str
    error: float
    """Largest difference from the expected result, in roundings."""
    tolerance: float = ROUNDINGS

    @property
    def holds(self) -> bool:
        """Whether the difference is only rounding; NaN is not."""
        return self.error <= self.tolerance


# Choices that concern the whole attention and are not components of an axis.
_WHOLE: tuple[dict[str, Any], ...] = (
    {"qk_norm": QKNorm.L2},
    {"qk_norm": QKNorm.RMS},
    {"kv_heads": 1},
    {"projection": Projection.NONE},
    {"value_projection": ValueProjection.KEYS},
    {"smoother": Smoother.LOCAL_LINEAR},
    {"maps": Maps.DIFFERENTIAL},
    {"output_gate": OutputGate.SIGMOID},
)
_TOLERANCES_ON_LONG_ROWS = {
    # A dot product adds the sums over the whole row to the rest and subtracts them again, and is rounded at their size
    # in between. Counted from the middle they are at most 252 here; 180 roundings were measured.
    "forgetting": 16 * ROUNDINGS,
    # The gradient of its network is a sum over all pairs of the rows; in float32 58 roundings were measured.
    "fire": 4 * ROUNDINGS,
}


def checks(device: str) -> dict[str, Callable[[], Iterator[Finding]]]:
    """Return the checks of every component of kdx, and of the choices that concern the whole attention, by name.

    An attention that several components have in common, such as all defaults, is checked with the first of them. Torch
    computes with one thread from then on.
    """
    # The attentions are so small that more threads would mostly wait for one another, at full processor time.
    torch.set_num_threads(1)
    checked: set[Hashable] = set()
    known: dict[str, Callable[[], Iterator[Finding]]] = {}
    for family in FAMILIES:
        for word in family if family.axis in AXES else ():
            known[f"{family.axis} {word}"] = partial(findings_of, family[word], device, checked=checked)
    for choices in _WHOLE:
        name = ", ".join(f"{name} {choice}" for name, choice in choices.items())
        known[name] = partial(_findings_of_whole, name, choices, device)
    return known


def _findings_of_whole(name: str, choices: Mapping[str, Any], device: str) -> Iterator[Finding]:
    module = build(device, {"positions": ("rotary",), "filter": "causal", **choices})
    yield from held(name, module, draw(device, 2, TOKENS, WIDTH), causal=True)


def findings_of(
    kind: type[Word],
    device: str,
    options: Mapping[str, Any] = MappingProxyType({}),
    checked: set[Hashable] | None = None,
) -> Iterator[Finding]:
    """Check every property of an attention that has the component, in several variants.

    What its class declares is checked first, and that it leaves torch's settings and random numbers alone.

    Args:
        kind: class of the component, see `AXES`.
        options: values of its options; the others have their defaults.
        checked: attentions that need no check, each with its number of tokens; those checked here are added.

    Raises:
        ComponentError: it is not a component of its kind, or changes a setting of torch.
        Exception: anything that the component raises.
    """
    variants = [(name, {**choices, **options}) for name, choices in _variants(kind)]
    _, choices = variants[-1]
    module, x = build("cpu", choices), draw("cpu", 2, TOKENS, WIDTH)
    with torch_left_alone("when it computes"), _readable_masks(module):
        rehearse(module, x, past=_is_causal(choices), classes=[kind])
    checked = set() if checked is None else checked
    short, long = x.to(device), draw(device, LONG_BATCH, LONG, WIDTH)
    for tokens, (name, choices) in [*((short, variant) for variant in variants), (long, variants[-1])]:
        module = build(device, choices)
        attention = (tokens.size(1), *((path, type(part)) for path, part in module.named_modules()))
        if attention in checked:
            continue
        checked.add(attention)
        if tokens is short:
            _train_twice(module, tokens)
        # A class that extends one of kdx inherits its name.
        wide = _TOLERANCES_ON_LONG_ROWS.get(kind.name, 0.0) if tokens is long else 0.0
        for finding in held(name, module, tokens, causal=_is_causal(choices), long=tokens is long):
            yield finding._replace(tolerance=max(finding.tolerance, wide))


def held(
    name: str, module: KernelAttention, x: Tensor, *, causal: bool = False, long: bool = False
) -> Iterator[Finding]:
    """Check the properties that apply to a variant, on tokens (B, T, M)."""
    for known in PROPERTIES:
        if known.long is long and (causal or not known.causal):
            with torch_left_alone("when it computes"), _readable_masks(module):
                error = known.error(module, x)
            if error is not None:
                yield Finding(known.name, name, error, known.tolerance)


def check_device(device: str) -> None:
    """Refuse a device that this machine, or this torch, does not have.

    Raises:
        KdxError: the device is missing.
    """
    if device == "cuda" and not torch.cuda.is_available():
        problem = "this torch is built without CUDA" if torch.version.cuda is None else "torch finds no GPU"
        raise KdxError(problem, place="--device cuda", allowed="cpu here")


def build(device: str, choices: Mapping[str, Any]) -> KernelAttention:
    """Return an attention with these choices, in float64; its positions start after a memory."""
    with torch_left_alone("when it is made", may_draw=True):
        module = KernelAttention(WIDTH, HEADS, **{"memory_length": TOKENS // 2, **choices})
        return module.double().to(device).eval()


def _variants(kind: type[Word]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, choices) of each attention in which a component is checked."""
    axis = next(axis for axis, base in AXES.items() if issubclass(kind, base))
    past_only = issubclass(kind, PositionScheme | NormaliserFunction) and kind.past_only
    kernels: tuple[Any, ...] = ("exponential", "rbf")
    positions: tuple[Any, ...] = ((), ("lookup",), ("direct-sum",))
    filters: tuple[Any, ...] = ("causal",) if past_only else ("full", "causal")
    own = {axis: kind} if axis in ("value", "normaliser", "encoding") else {}
    match axis:
        case "kernel":
            kernels = (kind,)
        case "position":
            positions = ((kind,),)
        case "filter":
            filters = (kind,)
        case "normaliser" if issubclass(kind, NormaliserFunction):
            kernels = tuple(known.word for known in KERNELS.definitions() if known.gives in kind.kernels)
            positions = ((),)
    for kernel, schemes, filter in product(kernels, positions, filters):
        name = ", ".join(_name(component) for component in (*own.values(), kernel, *schemes, filter))
        yield name, {"kernel": kernel, "positions": schemes, "filter": filter, **own}
    if axis == "kernel":
        yield f"{_name(kind)}, symmetric", {"kernel": kind, "filter": "causal", "symmetry": Symmetry.SYMMETRIC}


def _name(word: str | type) -> str:
    return word if isinstance(word, str) else word.__name__


def _is_causal(choices: Mapping[str, Any]) -> bool:
    """Return whether no query sees later tokens, as in a decoder."""
    filter = choices["filter"]
    return filter == "causal" or (not isinstance(filter, str) and not filter.sees_later)


def _train_twice(module: KernelAttention, x: Tensor) -> None:
    """Make two passes forward and backward; the second fails if the module keeps something of the first."""
    with torch_left_alone("in training", may_draw=True):
        for _ in range(2):
            module.train()(x).sum().backward()
    module.zero_grad()
    module.eval()

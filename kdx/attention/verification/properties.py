"""The properties that an attention must have, whoever wrote its components: kdx's own and others are held to one list.

`kdx verify` checks every component of kdx, `kdx verify --component` and `kdx.testing` a custom one. Some properties are
propositions of theory, on attention without positions, or on what the class of a component says of itself. What must be
equal may differ by rounding, in the unit of `rounding`; all is computed on random features of a fixed seed, in float64
unless a property says otherwise.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kdx.attention.cache import Cache
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
from kdx.attention.verification.interface import check_components, check_reads
from kdx.attention.verification.rounding import ROUNDINGS, condition, largest, roundings
from kdx.attention.verification.torch_state import torch_left_alone
from kdx.errors import ComponentError, KdxError
from kdx.vocabulary import Maps, OutputGate, QKNorm, Symmetry

AXES: Mapping[str, type[Word]] = {
    "kernel": KernelFunction,
    "position": PositionScheme,
    "value": ValueFunction,
    "filter": FilterFunction,
    "normaliser": NormaliserFunction,
    "encoding": AbsoluteEncoding,
}
"""Axis → the base class of its components, for each that is checked."""
WIDTH, HEADS, TOKENS = 16, 2, 9
# Enough for several blocks, each computed again for its gradient.
LONG_BATCH, LONG = 4, 520
# Half of what unseen vectors need: the features are always the same, so that no row can be unlucky one day.
DRAWS = 4
_MEMORY, _PADDING = TOKENS // 2, 3
# A difference quotient has half the digits of its number format, at a step that depends on the curvature: the best of
# some counts, since a wrong gradient is off at every step. The smallest steps are for filters that choose by weights:
# over a longer one they may choose another key.
_STEPS, _QUOTIENT = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8), 1e-6

# What a scheme makes of integers it may make in torch's own dtype.
_SINGLE = ROUNDINGS * torch.finfo(torch.float32).eps / torch.finfo(torch.float64).eps

Compute = Callable[..., Tensor]
"""A result (…, T, D) of an attention and tokens (B, T, M)."""


class Finding(NamedTuple):
    """How far one variant of an attention is from what it is checked for."""

    check: str
    """The name of the property, or the path and number format that are compared with vectors."""
    variant: str
    error: float
    """Largest difference from what is demanded, in roundings."""
    tolerance: float = ROUNDINGS
    case: str | None = None
    """The case of a file of vectors (`golden`); None if it is none of those."""

    @property
    def holds(self) -> bool:
        """Whether the difference is rounding; NaN is none."""
        return self.error <= self.tolerance


@dataclass(frozen=True)
class Property:
    """How far an attention may be from what it must be."""

    name: str
    missed: str
    """What is wrong with a component that misses it, in words for its author."""
    error: Callable[[KernelAttention, Tensor], float | None]
    """How far an attention is from it on tokens (B, T, M); None: it says nothing of this one."""
    causal: bool = False
    """Whether it speaks only of attention in which no query sees a later token."""
    tolerance: float = ROUNDINGS
    long: bool = False
    """Whether it is checked on long rows, which take long, in one variant alone."""


# What concerns the whole attention and is no component of an axis.
_WHOLE: tuple[dict[str, Any], ...] = (
    {"qk_norm": QKNorm.L2},
    {"qk_norm": QKNorm.RMS},
    {"kv_heads": 1},
    {"maps": Maps.DIFFERENTIAL},
    {"output_gate": OutputGate.SIGMOID},
)
_TOLERANCES_ON_LONG_ROWS = {
    # A dot product adds the sums over the whole row to the rest and takes them away again, and is rounded at their size
    # in between. Counted from the middle they are at most 252 here; 180 roundings were found.
    "forgetting": 16 * ROUNDINGS,
    # The gradient of its network is a sum over all pairs of the rows; in float32 58 were found.
    "fire": 4 * ROUNDINGS,
}


def findings(device: str) -> Iterator[Finding]:
    """Check every component of kdx, and what concerns the whole attention.

    Raises:
        KdxError: there is no such device.
    """
    check_device(device)
    for family in FAMILIES:
        for word in family if family.axis in AXES else ():
            for finding in findings_of(family[word], device):
                tolerance = _TOLERANCES_ON_LONG_ROWS.get(word, 0.0) if finding.check.endswith("long rows") else 0.0
                yield finding._replace(tolerance=max(finding.tolerance, tolerance))
    for choices in _WHOLE:
        name = ", ".join(f"{name} {choice}" for name, choice in choices.items())
        module = build(device, {"positions": ("rotary",), "filter": "causal", **choices})
        yield from held(name, module, draw(device, 2, TOKENS, WIDTH), causal=True)


def findings_of(kind: type[Word], device: str, options: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Finding]:
    """Check every property of an attention that has the component, in several variants.

    First of all what its class says of it, and that it leaves torch's settings and random numbers alone.

    Args:
        kind: its class, see `AXES`.
        options: values of its options; the others have their defaults.

    Raises:
        ComponentError: it is no component of its kind, or changes a setting of torch.
        KdxError: there is no such device.
        Exception: whatever the component raises.
    """
    check_device(device)
    variants = [(name, {**choices, **options}) for name, choices in _variants(kind)]
    _, choices = variants[-1]
    _check_interface(kind, choices)
    x = draw(device, 2, TOKENS, WIDTH)
    for name, choices in variants:
        module = build(device, choices)
        _check_passes(module, x)
        yield from held(name, module, x, causal=_is_causal(choices))
    yield from held(name, build(device, choices), draw(device, LONG_BATCH, LONG, WIDTH), long=True)


def held(
    name: str, module: KernelAttention, x: Tensor, *, causal: bool = False, long: bool = False
) -> Iterator[Finding]:
    """Check the properties that speak of a variant, on tokens (B, T, M)."""
    for known in PROPERTIES:
        if known.long is long and (causal or not known.causal):
            with torch_left_alone("when it computes"):
                error = known.error(module, x)
            if error is not None:
                yield Finding(known.name, name, error, known.tolerance)


def check_device(device: str) -> None:
    """Refuse a device that this machine, or this torch, does not have.

    Raises:
        KdxError: there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        built = "this torch is built without CUDA" if torch.version.cuda is None else "torch finds no GPU"
        raise KdxError(built, place="--device cuda", allowed="cpu here")


def draw(device: str, *shape: int, seed: int = 0) -> Tensor:
    """Return random numbers of a shape in float64, the same for the same seed on every device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device)


def build(device: str, choices: Mapping[str, Any]) -> KernelAttention:
    """Return an attention with these choices, in float64; its positions start after a memory."""
    with torch_left_alone("when it is made", may_draw=True):
        module = KernelAttention(WIDTH, HEADS, **{"memory_length": _MEMORY, **choices})
        return module.double().to(device).eval()


@torch.no_grad()
def difference(module: KernelAttention, computed: Compute, expected: Compute, *inputs: Tensor) -> float:
    """Return the larger error of the two paths of a result, (…, T, D), of the module and inputs in float64."""
    module.path = "literal"
    unit = condition(expected, module, *inputs, draws=DRAWS)
    errors = []
    for module.path in ("literal", "fused"):
        errors.append(roundings(computed(module, *inputs), expected(module, *inputs), unit))
    return largest(errors)


def _variants(kind: type[Word]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, choices) of each attention with a component that is checked."""
    axis = next(axis for axis, base in AXES.items() if issubclass(kind, base))
    past_only = issubclass(kind, PositionScheme) and kind.past_only
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
    """Whether no query sees what stands after it, as in a decoder."""
    filter = choices["filter"]
    return filter == "causal" or (not isinstance(filter, str) and not filter.sees_later)


def _check_interface(kind: type[Word], choices: Mapping[str, Any]) -> None:
    module, x = build("cpu", choices), draw("cpu", 2, TOKENS, WIDTH)
    with torch_left_alone("when it computes"):
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            check_components(copy.deepcopy(module).to(dtype), x.to(dtype), past=True, classes=[kind])
        check_reads(module, x, past=_is_causal(choices), classes=[kind])


def _check_passes(module: KernelAttention, x: Tensor) -> None:
    """Make two passes forward and backward as in training, and check that it gives the same again out of it."""
    with torch_left_alone("in training", may_draw=True):
        for _ in range(2):  # the second fails where something is kept of the first
            module.train()(x).sum().backward()
    module.zero_grad()
    module.eval()
    with torch_left_alone("when it computes"):
        if not torch.equal(module(x).nan_to_num(), module(x).nan_to_num()):
            problem = "it gives other numbers for the same tokens when it is asked again"
            raise ComponentError(problem, hint="keep nothing between two calls, and draw no random numbers")


def _literal(module: KernelAttention, x: Tensor) -> Tensor:
    path, module.path = module.path, "literal"
    try:
        return module.smooth(x)
    finally:
        module.path = path


def _row_by_row(module: KernelAttention, x: Tensor) -> Tensor:
    return torch.cat([module(row) for row in torch.split(x, 1)])


def _decoded(module: KernelAttention, x: Tensor) -> Tensor:
    cache = Cache()
    return torch.cat([module(token, cache=cache) for token in torch.split(x, 1, dim=1)], 1)


def _after_memory(module: KernelAttention, x: Tensor) -> Tensor:
    return module(x[:, _MEMORY:], memory=x[:, :_MEMORY])


def _in_one_pass(module: KernelAttention, x: Tensor) -> Tensor:
    return module(x, query_positions=torch.arange(x.size(1), device=x.device))[:, _MEMORY:]


def _padded(module: KernelAttention, x: Tensor) -> Tensor:
    """With padding to the right, and, moved by as many positions, to the left: (2, B, T, M)."""
    padding = draw(str(x.device), x.size(0), _PADDING, WIDTH, seed=7)
    real = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
    hidden = torch.ones(padding.shape[:2], dtype=torch.bool, device=x.device)
    to_right = module(torch.cat([x, padding], 1), key_padding=torch.cat([real, hidden], 1))[:, : x.size(1)]
    to_left = module(torch.cat([padding, x], 1), key_padding=torch.cat([hidden, real], 1))[:, _PADDING:]
    return torch.stack([to_right, to_left])


def _there_and_ahead(module: KernelAttention, x: Tensor) -> Tensor:
    ahead = torch.arange(x.size(1), device=x.device) + module.memory_length + _PADDING
    return torch.stack([module(x), module(x, query_positions=ahead)])


@torch.no_grad()
def _half(module: KernelAttention, x: Tensor) -> float | None:
    """How far half precision is off; None: its filter may choose another key, so that no distance says anything."""
    computed = copy.deepcopy(module).to(torch.bfloat16).smooth(x.to(torch.bfloat16))
    if module.filter.reads_content:
        return None if bool(computed.isfinite().all()) else torch.nan
    return roundings(computed, module.smooth(x), condition(KernelAttention.smooth, module, x, draws=DRAWS))


def _gradient(module: KernelAttention, x: Tensor) -> float:
    """How far the derivative in some direction, of the tokens and of all that is learned, is off: a share of itself."""
    device = str(x.device)
    learned = list(module.parameters())
    before = [parameter.detach().clone() for parameter in learned]
    inputs = [x.clone().requires_grad_(), *learned]
    directions = [draw(device, *tensor.shape, seed=11 + place) for place, tensor in enumerate(inputs)]
    factors = draw(device, *x.shape, seed=7)
    output = (module(inputs[0]) * factors).sum()
    gradients = torch.autograd.grad(output, inputs, allow_unused=True, materialize_grads=True)
    pairs = list(zip(gradients, directions, strict=True))
    derivative = sum(((gradient * direction).sum() for gradient, direction in pairs), torch.zeros(()))
    scale = torch.stack([gradient.norm() * direction.norm() for gradient, direction in pairs]).norm()

    def at(step: float) -> Tensor:
        for parameter, was, direction in zip(learned, before, directions[1:], strict=True):
            parameter.copy_(was + step * direction)
        return (module(x + step * directions[0]) * factors).sum()

    with torch.no_grad():
        errors = [float(((at(step) - at(-step)) / (2 * step) - derivative).abs() / scale) for step in _STEPS]
        at(0.0)
    return min(errors, key=lambda error: error if error == error else torch.inf)


def _on_long_rows(module: KernelAttention, x: Tensor) -> float:
    """The largest error of output and gradients on the fast path in float64 and float32, against Eq. 2 in float64."""
    with torch.no_grad():
        unit, expected = condition(KernelAttention.smooth, module, x, draws=DRAWS), _literal(module, x)

    def gradients(module: KernelAttention, x: Tensor) -> Tensor:
        # Of outputs in units of their conditions, for else the worst row outweighs all others.
        output = module.smooth(x) / unit.clamp(min=1).to(x.dtype)
        factors = draw(str(x.device), *output.shape, seed=3).to(output.dtype)
        learned = [parameter for name, parameter in module.named_parameters() if not name.startswith("output.")]
        # A kernel may ignore its queries.
        numbers = torch.autograd.grad((output * factors).mean(), learned, allow_unused=True, materialize_grads=True)
        return torch.cat([gradient.flatten() for gradient in numbers]).unsqueeze(0)

    # One draw is enough for one row of many numbers, and the fast path for a unit.
    unit_of_gradients = condition(gradients, module, x, draws=1)
    module.path = "literal"
    expected_gradients = gradients(module, x)
    module.path = "fused"
    errors = []
    # Of two keys that weigh nearly the same, a filter may choose another one in float32.
    for dtype in (torch.float64,) if module.filter.reads_content else (torch.float64, torch.float32):
        module.to(dtype)
        with torch.no_grad():
            errors.append(roundings(module.smooth(x.to(dtype)), expected, unit))
        errors.append(roundings(gradients(module, x.to(dtype)), expected_gradients, unit_of_gradients))
    return largest(errors)


def _blind_to_order(module: KernelAttention) -> bool:
    """Whether nothing in it looks at where a token stands, but for the filter."""
    value = module.value_function
    return not (module.positions or module.kernel.sees_positions or value.uses_vector or value.uses_weights)


def _permuted(module: KernelAttention, x: Tensor) -> float | None:
    """Permuting the tokens permutes the output (Tsai et al. 2019, Prop. 1)."""
    if module.filter.limits or not _blind_to_order(module):
        return None
    order = torch.randperm(x.size(1), generator=torch.Generator().manual_seed(2))
    return difference(module, lambda module, x: module(x[:, order]), lambda module, x: module(x)[:, order], x)


def _permuted_before(module: KernelAttention, x: Tensor) -> float | None:
    """The last output does not change when the tokens before it are permuted."""
    if not module.filter.triangular or not _blind_to_order(module):
        return None
    order = torch.tensor([*reversed(range(x.size(1) - 1)), x.size(1) - 1], device=x.device)
    last = (lambda module, x: module(x[:, order])[:, -1:], lambda module, x: module(x)[:, -1:])
    return difference(module, *last, x)


def _gram(module: KernelAttention, x: Tensor) -> Tensor:
    """k(q_i, k_j) of every pair, (B, H, T, T), from tokens (B, T, M)."""
    projected = module._project(x, None)
    log_weight = module.kernel.log_weight(projected.query, projected.key)
    weight = module.kernel.weight(projected.query, projected.key)
    if log_weight is None:
        assert weight is not None
        return weight
    return log_weight.exp() if weight is None else log_weight.exp() * weight


def _eigenvalues(module: KernelAttention, x: Tensor) -> Tensor:
    gram = _gram(module, x)
    return torch.linalg.eigvalsh((gram + gram.transpose(-2, -1)) / 2)


@torch.no_grad()
def _semi_definite(module: KernelAttention, x: Tensor) -> float | None:
    if not module.kernel.positive_semi_definite or module.key is not None or module.positions:
        return None
    gram, eigenvalues = _gram(module, x), _eigenvalues(module, x)
    asymmetry = roundings(gram, gram.transpose(-2, -1), condition(_gram, module, x))
    return largest([asymmetry, roundings(eigenvalues, eigenvalues.clamp(min=0), condition(_eigenvalues, module, x))])


def _shifted(module: KernelAttention, x: Tensor) -> float | None:
    schemes = list(module._schemes)
    if not schemes or any(scheme.absolute for scheme in schemes) or module.value_function.uses_vector:
        return None
    if module.kernel.name != "exponential":
        return None  # what a scheme does to queries and keys, such as xpos, may cancel in their dot product alone
    if module.filter.limits and not module.filter.triangular:
        return None  # it may look at absolute positions
    positions = torch.arange(x.size(1), device=x.device)
    here, there = (lambda module, x, shift=shift: module(x, query_positions=positions + shift) for shift in (0, 5))
    return difference(module, here, there, x)


def _longer_query(module: KernelAttention, x: Tensor) -> float | None:
    if not module.kernel.blind_to_query_norm or module.positions or not module.normaliser.is_row_sum:
        return None
    y = draw(str(x.device), *x.shape, seed=5)
    return difference(module, lambda module, x, y: module.smooth(3 * x, y), KernelAttention.smooth, x, y)


def _same(
    computed: Compute, expected: Compute = KernelAttention.__call__
) -> Callable[[KernelAttention, Tensor], float]:
    return lambda module, x: difference(module, computed, expected, x)


_BY_INDEX = "a token has to be found by its position, not by its index"
PROPERTIES = (
    Property(
        "both paths agree",
        "what it gives for the fast path (dot_product, blockwise, feature_map, seen) is another thing than what it"
        " gives for the formula (log_weight, weight, visible)",
        _same(lambda module, x: module.smooth(x), _literal),
    ),
    Property(
        "rows of a batch are independent",
        "what it gives for a row depends on the other rows of the batch",
        _same(_row_by_row),
    ),
    Property(
        "cached decoding equals teacher forcing",
        "what it gives for a query depends on how many queries and keys there are, or on keys after the query;"
        f" {_BY_INDEX}",
        _same(_decoded),
        causal=True,
    ),
    Property(
        "memory equals one long pass",
        f"what it gives for a pair depends on how many queries and keys there are; {_BY_INDEX}",
        _same(_after_memory, _in_one_pass),
        causal=True,
    ),
    Property(
        "padding changes nothing",
        "what it gives for a pair depends on tokens that are hidden, or on their number",
        _same(_padded, _there_and_ahead),
    ),
    Property(
        "half precision",
        "in bf16 it loses more digits than its inputs do; see kdx.attention.interfaces.upcast",
        _half,
    ),
    Property(
        "gradients are those of differences",
        "its gradient by the tokens, or by what it learns, is not that of its numbers; look for detach, data, no_grad"
        " and a backward of its own",
        _gradient,
        tolerance=_QUOTIENT,
    ),
    Property(
        "both paths agree on long rows",
        "in blocks of queries and keys, or in float32, it gives other numbers than the formula for the whole row in"
        " float64, or other gradients",
        _on_long_rows,
        long=True,
    ),
    Property(
        "permutation equivariance without a mask",
        "without positions, and with a filter that hides nothing, what it gives depends on the order of the tokens",
        _permuted,
    ),
    Property(
        "one causal layer is blind to the order of its prefix",
        "without positions, what it gives for the last token depends on the order of those before it",
        _permuted_before,
    ),
    Property(
        "symmetric Gram matrices are positive semi-definite",
        "its class says positive_semi_definite = True, and the Gram matrix of some features is not",
        _semi_definite,
    ),
    Property(
        "relative schemes are shift-invariant",
        "its class does not say absolute = True, and it gives something else when all positions move by one number",
        _shifted,
        tolerance=_SINGLE,
    ),
    Property(
        "the norm of the query is not seen",
        "its class says blind_to_query_norm = True, and a query of three times the length gives something else",
        _longer_query,
    ),
)
"""What each attention is held to."""

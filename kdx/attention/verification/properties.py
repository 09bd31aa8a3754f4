"""The properties that an attention must have, the same for kdx's components and custom ones.

Some are propositions of theory about attention without positions, or about what the class of a component declares.
Equal results may differ by rounding, in the unit of `rounding`; everything is computed in float64 unless a property
says otherwise. `cases` are the attentions that are checked; a sweep tries the properties that are `rehearsed` in the
number format of its runs, see `interface.rehearse`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

import kdx.attention.module as attention
from kdx.attention.cache import Cache
from kdx.attention.interfaces import ValueFunction
from kdx.attention.module import KernelAttention
from kdx.attention.verification.rounding import (
    ROUNDINGS,
    condition,
    largest,
    numbers_of,
    roundings,
    set_numbers,
    with_condition,
)

# A quarter of what unseen vectors need: the features are always the same, so no row can be unlucky one day. No error is
# then above a quarter of its tolerance.
DRAWS = 2
_PADDING = 3  # tokens
# A difference quotient has half the digits of its number format, at a step that depends on the curvature. The best of
# several steps counts, since a wrong gradient is off at every step; the first one is nearly always enough. The smallest
# steps are for filters that choose by weights: over a longer step they may choose another key.
_STEPS, _QUOTIENT = (1e-5, 1e-6, 1e-4, 1e-7, 1e-8), 1e-6

# A scheme may compute in torch's default dtype what it computes from integers.
_SINGLE = ROUNDINGS * torch.finfo(torch.float32).eps / torch.finfo(torch.float64).eps

Compute = Callable[..., Tensor]
"""A result (…, T, D) of an attention and tokens (B, T, M)."""


@dataclass(frozen=True)
class Property:
    """A property of an attention, and the error by which an attention misses it."""

    name: str
    missed: str
    """The fault of a component that misses the property, as a message for its author."""
    results: tuple[Compute, Compute] | None = None
    """Two results that must be equal: the checked one and the expected one."""
    measure: Callable[[KernelAttention, Tensor], float | None] | None = None
    """The error on tokens (B, T, M), if it is not the difference of two results; returns None if the property does not
    apply to this attention."""
    causal: bool = False
    """Whether it applies only to attention in which no query sees a later token."""
    rehearsed: bool = False
    """Whether a sweep checks it before it starts, since a table would be wrong without it."""
    paths: bool = False
    """Whether it compares two paths; a mixer that is not an attention has only one."""
    tolerance: float = ROUNDINGS
    long: bool = False
    """Whether it is checked on long rows; since they take long, only in one variant."""

    def error(self, module: KernelAttention, x: Tensor) -> float | None:
        """Return the error of an attention on tokens (B, T, M); None if the property does not apply to it."""
        if self.results is not None:
            return difference(module, *self.results, x)
        assert self.measure is not None
        return self.measure(module, x)


def draw(device: str, *shape: int, seed: int = 0) -> Tensor:
    """Return random numbers of a shape in float64, the same for the same seed on every device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device)


@torch.no_grad()
def difference(module: KernelAttention, computed: Compute, expected: Compute, *inputs: Tensor) -> float:
    """Return the larger error of the two paths of a result, (…, T, D), of the module and inputs in float64."""
    module.path = "literal"
    result, unit = with_condition(expected, module, *inputs, draws=DRAWS)
    literal = roundings(computed(module, *inputs), result, unit)
    module.path = "fused"
    return largest([literal, roundings(computed(module, *inputs), expected(module, *inputs), unit)])


def _in_one_call(module: KernelAttention, x: Tensor) -> Tensor:
    output: Tensor = module(x)
    return output


_FOR_LONG_ROWS = {
    "BLOCK": 0,
    "SMALLEST_BLOCK": 4,
    "LARGEST_MASK": -1,
    "LARGEST_KEPT": -1,
    "FEWEST_TOKENS": 0,
    "FEWEST_TOKENS_PER_FEATURE": 0,
}
"""Limits of `kdx.attention.module` under which a few tokens are computed as long rows are."""


@contextmanager
def _limits(limits: Mapping[str, int]) -> Iterator[None]:
    usual = {name: getattr(attention, name) for name in limits}
    try:
        for name, limit in limits.items():
            setattr(attention, name, limit)
        yield
    finally:
        for name, limit in usual.items():
            setattr(attention, name, limit)


def _on_its_path(module: KernelAttention, x: Tensor) -> Tensor:
    return module.smooth(x)


def _as_long_rows(module: KernelAttention, x: Tensor) -> Tensor:
    with _limits(_FOR_LONG_ROWS):
        return module.smooth(x)


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
    return module(x[:, module.memory_length :], memory=x[:, : module.memory_length])


def _in_one_pass(module: KernelAttention, x: Tensor) -> Tensor:
    return module(x, query_positions=torch.arange(x.size(1), device=x.device))[:, module.memory_length :]


def _padded(module: KernelAttention, x: Tensor, *, left: bool = False) -> Tensor:
    padding = draw(str(x.device), x.size(0), _PADDING, x.size(-1), seed=7).to(x.dtype)
    parts = [(padding, True), (x, False)] if left else [(x, False), (padding, True)]
    hidden = torch.cat([torch.full(part.shape[:2], hides, device=x.device) for part, hides in parts], 1)
    output = module(torch.cat([part for part, _ in parts], 1), key_padding=hidden)
    return output[:, _PADDING:] if left else output[:, : x.size(1)]


def _padded_on_the_left(module: KernelAttention, x: Tensor) -> Tensor:
    return _padded(module, x, left=True)


def _ahead(module: KernelAttention, x: Tensor) -> Tensor:
    """Return the output with tokens moved by as many positions as there is padding."""
    return module(x, query_positions=torch.arange(x.size(1), device=x.device) + module.memory_length + _PADDING)


@torch.no_grad()
def _half(module: KernelAttention, x: Tensor) -> float | None:
    """Return the error of half precision; None if the filter may choose another key, which makes any error possible."""
    before = numbers_of(module)
    computed = module.to(torch.bfloat16).smooth(x.to(torch.bfloat16))
    set_numbers(module, before)
    if module.filter.reads_content:
        return None if bool(computed.isfinite().all()) else torch.nan
    return roundings(computed, *with_condition(KernelAttention.smooth, module, x, draws=DRAWS))


def _gradient(module: KernelAttention, x: Tensor) -> float:
    """Return the relative error of the derivative in some direction of the tokens and of all parameters."""
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

    smallest = torch.inf
    with torch.no_grad():
        for step in _STEPS:
            error = float(((at(step) - at(-step)) / (2 * step) - derivative).abs() / scale)
            smallest = min(smallest, error)  # never NaN, which is below nothing
            if smallest <= _QUOTIENT:
                break
        at(0.0)
    return smallest


def _on_long_rows(module: KernelAttention, x: Tensor) -> float:
    """Return the largest error of output and gradients on the fast path, in both formats, against Eq. 2 in float64."""
    with torch.no_grad():
        unit = condition(KernelAttention.smooth, module, x, draws=DRAWS)
    # Outputs in units of their conditions, since otherwise the worst row outweighs all others.
    factors = draw(str(x.device), *unit.shape[:-1], x.size(-1) // unit.size(1), seed=3) / unit.clamp(min=1)

    def computed(module: KernelAttention, x: Tensor) -> tuple[Tensor, Tensor]:
        output = module.smooth(x)
        mean = (output * factors.to(x.dtype)).mean()
        learned = [parameter for name, parameter in module.named_parameters() if not name.startswith("output.")]
        # A kernel may ignore its queries.
        numbers = torch.autograd.grad(mean, learned, allow_unused=True, materialize_grads=True)
        return output.detach(), torch.cat([gradient.flatten() for gradient in numbers]).unsqueeze(0)

    # One draw is enough for one row of many numbers, and the fast path for a unit.
    unit_of_gradients = condition(lambda module, x: computed(module, x)[1], module, x, draws=1)
    module.path = "literal"
    expected, expected_gradients = computed(module, x)
    module.path = "fused"
    errors = []
    # If two keys weigh nearly the same, a filter may choose the other one in float32.
    for dtype in (torch.float64,) if module.filter.reads_content else (torch.float64, torch.float32):
        # As few queries at a time as it ever takes, so that rows of a few hundred take several blocks.
        with _limits({"BLOCK": 0}):
            output, gradients = computed(module.to(dtype), x.to(dtype))
        errors.append(roundings(output, expected, unit))
        errors.append(roundings(gradients, expected_gradients, unit_of_gradients))
    return largest(errors)


def _is_absolute(value: ValueFunction) -> bool:
    """Return whether a value function says, as a position scheme may, that it depends on absolute positions."""
    return bool(getattr(value, "absolute", False))


def _blind_to_order(module: KernelAttention) -> bool:
    """Return whether nothing but the filter depends on the positions of tokens."""
    value = module.value_function
    of_positions = value.uses_vector or value.uses_weights or value.of_distance or _is_absolute(value)
    of_positions = of_positions or module.normaliser.past_only
    return not (module.positions or module.kernel.sees_positions or of_positions)


def _permuted(module: KernelAttention, x: Tensor) -> float | None:
    """Return the error of: permuting the tokens permutes the output (Tsai et al. 2019, Prop. 1)."""
    if module.filter.limits or not _blind_to_order(module):
        return None
    order = torch.randperm(x.size(1), generator=torch.Generator().manual_seed(2))
    return difference(module, lambda module, x: module(x[:, order]), lambda module, x: module(x)[:, order], x)


def _permuted_before(module: KernelAttention, x: Tensor) -> float | None:
    """Return the error of: the last output does not change when the tokens before it are permuted."""
    if not module.filter.triangular or not _blind_to_order(module):
        return None
    order = torch.tensor([*reversed(range(x.size(1) - 1)), x.size(1) - 1], device=x.device)
    last = (lambda module, x: module(x[:, order])[:, -1:], lambda module, x: module(x)[:, -1:])
    return difference(module, *last, x)


def _gram(module: KernelAttention, x: Tensor) -> Tensor:
    """Return k(q_i, k_j) of every pair, (B, H, T, T), from tokens (B, T, M)."""
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
    value = module.value_function
    if not schemes or any(scheme.absolute for scheme in schemes) or value.uses_vector or _is_absolute(value):
        return None
    if module.kernel.name != "exponential":
        return None  # what a scheme such as xpos does to queries and keys may cancel only in their dot product
    if module.filter.limits and not module.filter.triangular:
        return None  # it may look at absolute positions
    positions = torch.arange(x.size(1), device=x.device)
    return difference(
        module,
        lambda module, x: module(x, query_positions=positions + 5),
        lambda module, x: module(x, query_positions=positions),
        x,
    )


def _longer_query(module: KernelAttention, x: Tensor) -> float | None:
    if not module.kernel.blind_to_query_norm or module.positions or not module.normaliser.is_row_sum:
        return None
    y = draw(str(x.device), *x.shape, seed=5)
    return difference(module, lambda module, x, y: module.smooth(3 * x, y), KernelAttention.smooth, x, y)


_BY_INDEX = "a token has to be found by its position, not by its index"
_ORDER = "declare sees_positions = True on a kernel, of_distance = True or absolute = True on a value"

_HIDDEN = "what it gives for a pair depends on tokens that are hidden, or on their number"
_OTHER_PATH = (
    "what it gives for the fast path (dot_product, blockwise, feature_map, seen) is another thing than what it gives"
    " for the formula (log_weight, weight, visible)"
)

PROPERTIES = (
    Property(
        "rows of a batch are independent",
        "what it gives for a row depends on the other rows of the batch",
        (_row_by_row, _in_one_call),
        rehearsed=True,
    ),
    Property("both paths agree", _OTHER_PATH, (_on_its_path, _literal), rehearsed=True, paths=True),
    Property(
        "cached decoding equals teacher forcing",
        "what it gives for a query depends on how many queries and keys there are, or on keys after the query;"
        f" {_BY_INDEX}",
        (_decoded, _in_one_call),
        causal=True,
        rehearsed=True,
    ),
    Property(
        "memory equals one long pass",
        f"what it gives for a pair depends on how many queries and keys there are; {_BY_INDEX}",
        (_after_memory, _in_one_pass),
        causal=True,
    ),
    Property("padding on the right changes nothing", _HIDDEN, (_padded, _in_one_call), rehearsed=True),
    Property("the path of long rows agrees", _OTHER_PATH, (_as_long_rows, _literal), rehearsed=True, paths=True),
    # It is not rehearsed, since a mixer need not take positions.
    Property("padding on the left changes nothing", _HIDDEN, (_padded_on_the_left, _ahead)),
    Property(
        "half precision",
        "in bf16 it loses more digits than its inputs do; see kdx.attention.interfaces.upcast",
        measure=_half,
    ),
    Property(
        "gradients are those of differences",
        "its gradient by the tokens, or by what it learns, is not that of its numbers; look for detach, data, no_grad"
        " and a backward of its own",
        measure=_gradient,
        tolerance=_QUOTIENT,
    ),
    Property(
        "both paths agree on long rows",
        "in blocks of queries and keys, or in float32, it gives other numbers than the formula for the whole row in"
        " float64, or other gradients",
        measure=_on_long_rows,
        long=True,
    ),
    Property(
        "permutation equivariance without a mask",
        "without positions, and with a filter that hides nothing, what it gives depends on the order of the tokens;"
        f" {_ORDER}",
        measure=_permuted,
    ),
    Property(
        "one causal layer is blind to the order of its prefix",
        f"without positions, what it gives for the last token depends on the order of those before it; {_ORDER}",
        measure=_permuted_before,
    ),
    Property(
        "symmetric Gram matrices are positive semi-definite",
        "its class says positive_semi_definite = True, and the Gram matrix of some features is not",
        measure=_semi_definite,
    ),
    Property(
        "relative schemes are shift-invariant",
        "its class does not say absolute = True, and it gives something else when all positions move by one number",
        measure=_shifted,
        tolerance=_SINGLE,
    ),
    Property(
        "the norm of the query is not seen",
        "its class says blind_to_query_norm = True, and a query of three times the length gives something else",
        measure=_longer_query,
    ),
)
"""The properties of every attention."""

"""What theory demands, as functions that return how far the modules are from it.

Each proposition is checked on both paths where the path matters, in float64, on random features of a fixed seed. What
must be equal may differ by rounding, in the unit of `rounding`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kdx.attention.cache import Cache
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.module import KernelAttention
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.attention.verification.device import check_device
from kdx.attention.verification.rounding import ROUNDINGS, condition, largest, roundings
from kdx.vocabulary import Maps, OutputGate, QKNorm, Symmetry

WIDTH, HEADS, TOKENS = 16, 2, 9
# Enough for several blocks, each computed again for its gradient.
LONG_BATCH, LONG = 4, 520
# Half of what unseen vectors need: the features are always the same, so that no row can be unlucky one day.
DRAWS = 4

POSITIVE_SEMI_DEFINITE = tuple(known.word for known in KERNELS.definitions() if known.positive_semi_definite)
BLIND_TO_QUERY_NORM = tuple(known.word for known in KERNELS.definitions() if known.blind_to_query_norm)
BLIND_TO_ORDER = tuple(known.word for known in KERNELS.definitions() if not known.sees_positions)
ABSOLUTE = tuple(known.word for known in POSITIONS.definitions() if known.absolute)
RELATIVE = tuple(scheme for scheme in POSITIONS if scheme not in ABSOLUTE)
# Their gradient jumps where a count passes a whole number, which float32 passes elsewhere.
WITH_JUMPS = ("cope",)
TOLERANCES_ON_LONG_ROWS = {
    # A dot product adds the sums over the whole row to the rest and takes them away again, and is rounded at their size
    # in between. Counted from the middle they are at most 252 here; 180 roundings were found.
    "forgetting": 16 * ROUNDINGS,
    # Where rectification leaves a query one feature, that cancels, and its gradient is 0 as a difference of two numbers
    # that are the larger the smaller the feature is; 64 were found.
    "cosformer": 8 * ROUNDINGS,
}
# Which kernels a normaliser has a meaning for.
NORMALISED = tuple(
    (kernel.word, normaliser.word)
    for normaliser in NORMALISERS.definitions()
    for kernel in KERNELS.definitions()
    if kernel.gives in normaliser.kernels
)
# What concerns the whole attention, up to the heads' output and beyond.
WITHIN: tuple[dict[str, Any], ...] = (
    {"qk_norm": QKNorm.L2},
    {"qk_norm": QKNorm.RMS},
    {"kv_heads": 1},
    {"maps": Maps.DIFFERENTIAL},
)
WHOLE: tuple[dict[str, Any], ...] = (*WITHIN, {"output_gate": OutputGate.SIGMOID})
# So small that a handful of tokens shows each pattern.
PATTERN: dict[str, Any] = {"stride": 3, "summary": 1, "left": 2, "right": 1, "sinks": 1, "top_k": 3}


@dataclass(frozen=True)
class PropositionError:
    """One proposition on one variant."""

    proposition: str
    variant: str
    error: float
    """Largest difference from what is demanded, in roundings; for what must differ, how far it falls short."""
    tolerance: float = ROUNDINGS

    @property
    def holds(self) -> bool:
        """Whether the difference is rounding."""
        return self.error <= self.tolerance


def findings(device: str) -> Iterator[PropositionError]:
    """Every proposition on every variant it speaks of.

    Raises:
        KdxError: there is no such device.
    """
    check_device(device)
    for name, check in PROPOSITIONS.items():
        for variant, *error in check(device):
            yield PropositionError(name, variant, *error)


Errors = Iterator[tuple[str, float] | tuple[str, float, float]]
"""(variant, error) one after the other, with the tolerance where it is another."""


def _draw(device: str, *shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device)


def _attention(device: str, **choices: Any) -> KernelAttention:
    torch.default_generator.manual_seed(1)
    return KernelAttention(WIDTH, HEADS, **choices).double().to(device).eval()


def _short(difference: Tensor, least: float) -> tuple[float, float]:
    """How far the largest difference falls short of what it must be at least, which it may not; NaN stays."""
    return float((least - difference.abs().max()).clamp(min=0)), 0.0


def _both(
    module: KernelAttention, found: Callable[..., Tensor], expected: Callable[..., Tensor], *inputs: Tensor
) -> float:
    """The larger error of the two paths of a result, (…, T, D), of the module and inputs in float64."""
    module.path = "literal"
    unit = condition(expected, module, *inputs, draws=DRAWS)
    errors = []
    for module.path in ("literal", "fused"):
        errors.append(roundings(found(module, *inputs), expected(module, *inputs), unit))
    return largest(errors)


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
def permutation_equivariance(device: str) -> Errors:
    """Without a mask and without positions, permuting the tokens permutes the output (Tsai et al. 2019, Prop. 1)."""
    x, order = _draw(device, 2, TOKENS, WIDTH), torch.randperm(TOKENS, generator=torch.Generator().manual_seed(2))
    for kernel in BLIND_TO_ORDER:
        module = _attention(device, kernel=kernel)
        yield (
            kernel,
            _both(module, lambda module, x: module(x[:, order]), lambda module, x: module(x)[:, order], x),
        )


@torch.no_grad()
def a_mask_breaks_permutation_equivariance(device: str) -> Errors:
    """With a causal filter the same permutation changes the output."""
    x, order = _draw(device, 2, TOKENS, WIDTH), torch.arange(TOKENS).flip(0)
    for kernel in KERNELS:
        module = _attention(device, kernel=kernel, filter="causal")
        yield kernel, *_short(module(x[:, order]) - module(x)[:, order], 1e-3)


@torch.no_grad()
def one_causal_layer_is_blind_to_the_order_of_its_prefix(device: str) -> Errors:
    """Without positions, the last output does not change when the tokens before it are permuted."""
    x = _draw(device, 2, TOKENS, WIDTH)
    order = torch.tensor([*reversed(range(TOKENS - 1)), TOKENS - 1], device=device)
    for kernel in BLIND_TO_ORDER:
        module = _attention(device, kernel=kernel, filter="causal")
        last = (lambda module, x: module(x[:, order])[:, -1:], lambda module, x: module(x)[:, -1:])
        yield kernel, _both(module, *last, x)


@torch.no_grad()
def two_causal_layers_are_not(device: str) -> Errors:
    """A second layer reads, at each place of the prefix, what had come before that place."""
    x = _draw(device, 2, TOKENS, WIDTH)
    permuted = torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1)
    for kernel in KERNELS:
        one = _attention(device, kernel=kernel, filter="causal")
        two = _attention(device, kernel=kernel, filter="causal")
        stacked = [two(y + one(y))[:, -1] for y in (x, permuted)]
        yield kernel, *_short(stacked[0] - stacked[1], 1e-6)


@torch.no_grad()
def symmetric_gram_matrices(device: str) -> Errors:
    """With one projection for queries and keys, the Gram matrix is symmetric and positive semi-definite."""
    x = _draw(device, 2, TOKENS, WIDTH)
    for kernel in POSITIVE_SEMI_DEFINITE:
        for norm in QKNorm:
            module = _attention(device, kernel=kernel, symmetry=Symmetry.SYMMETRIC, qk_norm=norm)
            unit = condition(_gram, module, x)
            asymmetry = roundings(_gram(module, x), _gram(module, x).transpose(-2, -1), unit)
            unit, found = condition(_eigenvalues, module, x), _eigenvalues(module, x)
            name = kernel if norm is QKNorm.NONE else f"{kernel}, qk_norm {norm}"
            yield name, largest([asymmetry, roundings(found, found.clamp(min=0), unit)])


@torch.no_grad()
def shift_invariance(device: str) -> Errors:
    """Schemes that see distances only do not change when every position moves alike."""
    x, positions = _draw(device, 2, TOKENS, WIDTH), torch.arange(TOKENS, device=device)
    for scheme in RELATIVE:
        module = _attention(device, positions=(scheme,), filter="causal")
        here, there = (lambda module, x, shift=shift: module(x, query_positions=positions + shift) for shift in (0, 5))
        yield scheme, _both(module, here, there, x)


@torch.no_grad()
def memory_equals_one_long_pass(device: str) -> Errors:
    """At layer one, attending to a memory gives what one causal pass over memory and segment gives."""
    x, counted = _draw(device, 2, 2 * TOKENS, WIDTH), torch.arange(2 * TOKENS, device=device)
    for scheme in (*RELATIVE, *ABSOLUTE, None):
        positions = (scheme,) if scheme else ()
        module = _attention(device, positions=positions, filter="causal", memory_length=TOKENS)
        yield (
            scheme if scheme else "none",
            _both(
                module,
                lambda module, x: module(x[:, TOKENS:], memory=x[:, :TOKENS]),
                lambda module, x: module(x, query_positions=counted)[:, TOKENS:],
                x,
            ),
        )


@torch.no_grad()
def cached_decoding_equals_teacher_forcing(device: str) -> Errors:
    """Token by token with a cache gives what one causal pass gives."""
    x = _draw(device, 2, TOKENS, WIDTH)
    for scheme in (*POSITIONS, None):
        for value in VALUES:
            module = _attention(device, positions=(scheme,) if scheme else (), value=value, filter="causal")

            name = f"{scheme if scheme else 'none'}, {value}"
            yield name, _both(module, _decoded, lambda module, x: module(x), x)
    for filter in FILTERS:
        if filter != "full":
            module = _attention(device, filter=filter, **PATTERN)
            yield filter, _both(module, _decoded, lambda module, x: module(x), x)
    for kernel, normaliser in NORMALISED:
        module = _attention(device, kernel=kernel, normaliser=normaliser, filter="causal")
        yield f"{kernel}, {normaliser}", _both(module, _decoded, lambda module, x: module(x), x)
    for choices in WHOLE:
        module = _attention(device, positions=("rotary",), filter="causal", **choices)
        yield _named(choices), _both(module, _decoded, lambda module, x: module(x), x)


def _named(choices: dict[str, Any]) -> str:
    return ", ".join(f"{name} {choice}" for name, choice in choices.items())


def _decoded(module: KernelAttention, x: Tensor) -> Tensor:
    cache = Cache()
    return torch.cat([module(x[:, index : index + 1], cache=cache) for index in range(x.size(1))], 1)


@torch.no_grad()
def padding_changes_nothing(device: str) -> Errors:
    """Hidden tokens to either side leave the rest alone, those to the left at positions below 0."""
    x, noise = _draw(device, 2, TOKENS, WIDTH), _draw(device, 2, 3, WIDTH, seed=7)
    hidden = torch.zeros(2, TOKENS + 3, dtype=torch.bool, device=device)
    right, left = hidden.clone(), hidden.clone()
    right[:, TOKENS:], left[:, :3] = True, True
    positions = torch.arange(TOKENS + 3, device=device)

    def padded(module: KernelAttention, x: Tensor) -> Tensor:
        to_right = module(torch.cat([x, noise], 1), key_padding=right)[:, :TOKENS]
        to_left = module(torch.cat([noise, x], 1), key_padding=left, query_positions=positions - 3)[:, 3:]
        return torch.stack([to_right, to_left])

    for kernel, normaliser in NORMALISED:
        module = _attention(device, kernel=kernel, normaliser=normaliser)
        yield f"{kernel}, {normaliser}", _both(module, padded, lambda module, x: module(x), x)


@torch.no_grad()
def the_norm_of_the_query_is_not_seen(device: str) -> Errors:
    """Homogeneous kernels divide it out of Eq. 2."""
    x, y = _draw(device, 2, TOKENS, WIDTH), _draw(device, 2, TOKENS, WIDTH, seed=5)
    for kernel in BLIND_TO_QUERY_NORM:
        module = _attention(device, kernel=kernel, bias=False)
        longer = (lambda module, x, y: module.smooth(3 * x, y), lambda module, x, y: module.smooth(x, y))
        yield kernel, _both(module, *longer, x, y)


@torch.no_grad()
def both_paths_agree(device: str) -> Errors:
    """Eq. 2 as printed and the fast path give one result."""
    x = _draw(device, 2, TOKENS, WIDTH)
    for kernel in KERNELS:
        for scheme in (*POSITIONS, None):
            for filter in FILTERS:
                positions = (scheme,) if scheme else ()
                module = _attention(device, kernel=kernel, positions=positions, filter=filter, **PATTERN)
                yield f"{kernel}, {scheme if scheme else 'none'}, {filter}", _between_paths(module, x)
    for kernel, normaliser in NORMALISED:
        for positions in ((), ("alibi",), ("product",)):
            for filter in ("full", "causal", "top-k"):
                choices = {"kernel": kernel, "normaliser": normaliser, "positions": positions, "filter": filter}
                name = ", ".join((kernel, normaliser, *positions, filter))
                yield name, _between_paths(_attention(device, **choices, **PATTERN), x)
    for kernel in KERNELS:
        for choices in WITHIN:
            module = _attention(device, kernel=kernel, filter="causal", **choices)
            yield f"{kernel}, {_named(choices)}", _between_paths(module, x)


def _between_paths(module: KernelAttention, x: Tensor) -> float:
    module.path = "literal"
    unit, expected = condition(KernelAttention.smooth, module, x, draws=DRAWS), module.smooth(x)
    module.path = "fused"
    return roundings(module.smooth(x), expected, unit)


def both_paths_agree_on_long_rows(device: str) -> Errors:
    """The same where the fast path goes block by block, and so do the gradients of all parameters.

    In both number formats; what is found in float32 is held against Eq. 2 in float64. Schemes whose gradient jumps are
    held to it in float64 only.
    """
    schemes: list[str | None] = [*POSITIONS]
    variants = [("exponential", scheme, "causal", "without-position") for scheme in [*schemes, None]]
    variants += [(kernel, None, "causal", "table") for kernel in KERNELS]
    for scheme in ("lookup", "relative"):
        variants += [("exponential", scheme, filter, "table") for filter in FILTERS if filter != "causal"]
    for kernel, position, filter, value in variants:
        positions = (position,) if position else ()
        module = _attention(device, kernel=kernel, positions=positions, filter=filter, value=value, stride=20)
        name = ", ".join((kernel, position if position else "none", value, filter))
        tolerance = max(TOLERANCES_ON_LONG_ROWS.get(word, ROUNDINGS) for word in (kernel, *positions))
        x = _draw(device, LONG_BATCH, LONG, WIDTH)
        for dtype, error in _long_errors(module, x, jumps=position in WITH_JUMPS):
            yield f"{name}, {dtype}", error, tolerance
    for kernel, normaliser in NORMALISED:
        if normaliser not in ("row-sum", "length"):
            module = _attention(device, kernel=kernel, normaliser=normaliser, filter="window", sinks=2)
            tolerance = TOLERANCES_ON_LONG_ROWS.get(kernel, ROUNDINGS)
            for dtype, error in _long_errors(module, _draw(device, LONG_BATCH, LONG, WIDTH), jumps=False):
                yield f"{kernel}, {normaliser}, window, {dtype}", error, tolerance


def _long_errors(module: KernelAttention, x: Tensor, *, jumps: bool) -> Iterator[tuple[str, float]]:
    """The larger error of output and gradients on the fast path, in each number format."""
    with torch.no_grad():
        unit = condition(KernelAttention.smooth, module, x, draws=DRAWS)

    def gradients(module: KernelAttention, x: Tensor) -> Tensor:
        # Of outputs in units of their conditions, for else the worst row outweighs all others.
        output = module.smooth(x) / unit.clamp(min=1).to(x.dtype)
        factors = _draw(str(x.device), *output.shape, seed=3).to(output.dtype)
        learned = [parameter for name, parameter in module.named_parameters() if not name.startswith("output.")]
        # A kernel may ignore its queries.
        found = torch.autograd.grad((output * factors).mean(), learned, allow_unused=True, materialize_grads=True)
        return torch.cat([one.flatten() for one in found]).unsqueeze(0)

    # One draw is enough for one row of many numbers, and the fast path for a unit.
    unit_of_gradients = condition(gradients, module, x, draws=1)
    module.path = "literal"
    with torch.no_grad():
        expected = module.smooth(x)
    expected_gradients = gradients(module, x)
    module.path = "fused"
    for dtype in (torch.float64, torch.float32):
        module.to(dtype)
        with torch.no_grad():
            error = roundings(module.smooth(x.to(dtype)), expected, unit)
        errors = [error]
        if dtype is torch.float64 or not jumps:
            errors.append(roundings(gradients(module, x.to(dtype)), expected_gradients, unit_of_gradients))
        yield str(dtype).removeprefix("torch."), largest(errors)


PROPOSITIONS: dict[str, Callable[[str], Errors]] = {
    "both paths agree": both_paths_agree,
    "both paths agree on long rows": both_paths_agree_on_long_rows,
    "permutation equivariance without a mask": permutation_equivariance,
    "none with a mask": a_mask_breaks_permutation_equivariance,
    "one causal layer is blind to the order of its prefix": one_causal_layer_is_blind_to_the_order_of_its_prefix,
    "two causal layers are not": two_causal_layers_are_not,
    "symmetric Gram matrices are positive semi-definite": symmetric_gram_matrices,
    "relative schemes are shift-invariant": shift_invariance,
    "memory equals one long pass": memory_equals_one_long_pass,
    "cached decoding equals teacher forcing": cached_decoding_equals_teacher_forcing,
    "padding changes nothing": padding_changes_nothing,
    "the norm of the query is not seen": the_norm_of_the_query_is_not_seen,
}

"""What theory demands, as functions that return how far the modules are from it.

Each proposition is checked on both paths where the path matters, in float64, on random features of a fixed seed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from kdx.attention.cache import Cache
from kdx.attention.module import KernelAttention
from kdx.attention.verification.device import check_device
from kdx.axes import Filter, Kernel, Position, Symmetry, Value

TOLERANCE, TOLERANCE_IN_FLOAT32 = 1e-9, 1e-4
"""Largest difference that is taken for rounding, on features of unit variance."""

WIDTH, HEADS, TOKENS = 16, 2, 9
# Enough for several blocks, each computed again for its gradient.
LONG_BATCH, LONG = 4, 520

# Positive semi-definite for every input when queries and keys share their projection.
POSITIVE_SEMI_DEFINITE = (Kernel.EXPONENTIAL, Kernel.RBF, Kernel.POLYNOMIAL)
ABSOLUTE = (Position.DIRECT_SUM, Position.PRODUCT)
RELATIVE = tuple(scheme for scheme in Position if scheme not in (*ABSOLUTE, Position.NONE))
BLIND_TO_QUERY_NORM = (Kernel.LINEAR, Kernel.POLYNOMIAL)


@dataclass(frozen=True)
class Finding:
    """One proposition on one variant."""

    proposition: str
    variant: str
    error: float
    """Largest difference from what is demanded; for what must differ, how far it falls short."""
    tolerance: float = TOLERANCE

    @property
    def holds(self) -> bool:
        """Whether the difference is rounding."""
        return self.error <= self.tolerance


def findings(device: str) -> Iterator[Finding]:
    """Every proposition on every variant it speaks of.

    Raises:
        KdxError: there is no such device.
    """
    check_device(device)
    for name, check in PROPOSITIONS.items():
        for variant, *error in check(device):
            yield Finding(name, variant, *error)


Errors = Iterator[tuple[str, float] | tuple[str, float, float]]
"""(variant, error) one after the other, with the tolerance where it is another."""


def _draw(device: str, *shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device)


def _attention(device: str, **choices: Any) -> KernelAttention:
    torch.default_generator.manual_seed(1)
    return KernelAttention(WIDTH, HEADS, **choices).double().to(device).eval()


def _largest(*errors: Tensor) -> float:
    """The largest absolute value; NaN if one of them is, which `max` would lose."""
    return float(torch.stack([error.abs().max() for error in errors]).max())


def _short(difference: Tensor, least: float) -> float:
    """How far the largest difference falls short of what it must be at least; NaN stays."""
    return float((least - difference.abs().max()).clamp(min=0))


def _both(module: KernelAttention, difference: Callable[[KernelAttention], Tensor]) -> float:
    """The larger error of the two paths."""
    errors = []
    for module.path in ("literal", "fused"):
        errors.append(difference(module))
    return _largest(*errors)


def _gram(module: KernelAttention, x: Tensor) -> Tensor:
    """k(q_i, k_j) of every pair, (B, H, T, T), from tokens (B, T, M)."""
    projected = module._project(x, None)
    weight = module.kernel.weight(projected.query, projected.key)
    if weight is None:
        log_weight = module.kernel.log_weight(projected.query, projected.key)
        assert log_weight is not None
        weight = log_weight.exp()
    return weight


@torch.no_grad()
def permutation_equivariance(device: str) -> Errors:
    """Without a mask and without positions, permuting the tokens permutes the output (Tsai et al. 2019, Prop. 1)."""
    x, order = _draw(device, 2, TOKENS, WIDTH), torch.randperm(TOKENS, generator=torch.Generator().manual_seed(2))
    for kernel in Kernel:
        module = _attention(device, kernel=kernel)
        yield kernel.value, _both(module, lambda module: module(x[:, order]) - module(x)[:, order])


@torch.no_grad()
def a_mask_breaks_permutation_equivariance(device: str) -> Errors:
    """With a causal filter the same permutation changes the output."""
    x, order = _draw(device, 2, TOKENS, WIDTH), torch.arange(TOKENS).flip(0)
    for kernel in Kernel:
        module = _attention(device, kernel=kernel, filter=Filter.CAUSAL)
        yield kernel.value, _short(module(x[:, order]) - module(x)[:, order], 1e-3)


@torch.no_grad()
def one_causal_layer_is_blind_to_the_order_of_its_prefix(device: str) -> Errors:
    """Without positions, the last output does not change when the tokens before it are permuted."""
    x = _draw(device, 2, TOKENS, WIDTH)
    permuted = torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1)
    for kernel in Kernel:
        module = _attention(device, kernel=kernel, filter=Filter.CAUSAL)
        yield kernel.value, _both(module, lambda module: module(permuted)[:, -1] - module(x)[:, -1])


@torch.no_grad()
def two_causal_layers_are_not(device: str) -> Errors:
    """A second layer reads, at each place of the prefix, what had come before that place."""
    x = _draw(device, 2, TOKENS, WIDTH)
    permuted = torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1)
    for kernel in Kernel:
        one = _attention(device, kernel=kernel, filter=Filter.CAUSAL)
        two = _attention(device, kernel=kernel, filter=Filter.CAUSAL)
        stacked = [two(y + one(y))[:, -1] for y in (x, permuted)]
        yield kernel.value, _short(stacked[0] - stacked[1], 1e-6)


@torch.no_grad()
def symmetric_gram_matrices(device: str) -> Errors:
    """With one projection for queries and keys, the Gram matrix is symmetric and positive semi-definite."""
    x = _draw(device, 2, TOKENS, WIDTH)
    for kernel in POSITIVE_SEMI_DEFINITE:
        module = _attention(device, kernel=kernel, symmetry=Symmetry.SYMMETRIC)
        gram = _gram(module, x)
        gram = gram / gram.amax((-2, -1), keepdim=True)
        turned = gram.transpose(-2, -1)
        yield kernel.value, _largest(gram - turned, torch.linalg.eigvalsh((gram + turned) / 2).clamp(max=0))


@torch.no_grad()
def shift_invariance(device: str) -> Errors:
    """Schemes that see distances only do not change when every position moves alike."""
    x, positions = _draw(device, 2, TOKENS, WIDTH), torch.arange(TOKENS, device=device)
    for scheme in RELATIVE:
        module = _attention(device, positions=(scheme,), filter=Filter.CAUSAL)
        yield (
            scheme.value,
            _both(
                module,
                lambda module: module(x, query_positions=positions) - module(x, query_positions=positions + 5),
            ),
        )


@torch.no_grad()
def memory_equals_one_long_pass(device: str) -> Errors:
    """At layer one, attending to a memory gives what one causal pass over memory and segment gives."""
    x = _draw(device, 2, 2 * TOKENS, WIDTH)
    for scheme in (*RELATIVE, *ABSOLUTE, None):
        positions = (scheme,) if scheme else ()
        module = _attention(device, positions=positions, filter=Filter.CAUSAL, memory_length=TOKENS)
        counted = torch.arange(2 * TOKENS, device=device)

        def difference(module: KernelAttention, counted: Tensor = counted) -> Tensor:
            segment = module(x[:, TOKENS:], memory=x[:, :TOKENS])
            whole: Tensor = module(x, query_positions=counted)
            return segment - whole[:, TOKENS:]

        yield scheme.value if scheme else "none", _both(module, difference)


@torch.no_grad()
def cached_decoding_equals_teacher_forcing(device: str) -> Errors:
    """Token by token with a cache gives what one causal pass gives."""
    x = _draw(device, 2, TOKENS, WIDTH)
    for scheme in (*(scheme for scheme in Position if scheme is not Position.NONE), None):
        for value in Value:
            module = _attention(device, positions=(scheme,) if scheme else (), value=value, filter=Filter.CAUSAL)

            def difference(module: KernelAttention) -> Tensor:
                cache = Cache()
                steps = [module(x[:, index : index + 1], cache=cache) for index in range(TOKENS)]
                whole: Tensor = module(x)
                return torch.cat(steps, 1) - whole

            yield f"{scheme.value if scheme else 'none'}, {value.value}", _both(module, difference)


@torch.no_grad()
def padding_changes_nothing(device: str) -> Errors:
    """Hidden tokens to either side leave the rest alone, those to the left at positions below 0."""
    x, noise = _draw(device, 2, TOKENS, WIDTH), _draw(device, 2, 3, WIDTH, seed=7)
    hidden = torch.zeros(2, TOKENS + 3, dtype=torch.bool, device=device)
    right, left = hidden.clone(), hidden.clone()
    right[:, TOKENS:], left[:, :3] = True, True
    positions = torch.arange(TOKENS + 3, device=device)
    for kernel in Kernel:
        module = _attention(device, kernel=kernel)

        def difference(module: KernelAttention) -> Tensor:
            plain: Tensor = module(x)
            to_right = module(torch.cat([x, noise], 1), key_padding=right)[:, :TOKENS]
            to_left = module(torch.cat([noise, x], 1), key_padding=left, query_positions=positions - 3)[:, 3:]
            return torch.stack([to_right - plain, to_left - plain])

        yield kernel.value, _both(module, difference)


@torch.no_grad()
def the_norm_of_the_query_is_not_seen(device: str) -> Errors:
    """Homogeneous kernels divide it out of Eq. 2."""
    x, y = _draw(device, 2, TOKENS, WIDTH), _draw(device, 2, TOKENS, WIDTH, seed=5)
    for kernel in BLIND_TO_QUERY_NORM:
        module = _attention(device, kernel=kernel, bias=False)
        unit = module.weights(x, y).abs().sum(-1, keepdim=True).clamp(min=1)

        def difference(module: KernelAttention, unit: Tensor = unit) -> Tensor:
            return (module.smooth(3 * x, y) - module.smooth(x, y)) / unit

        yield kernel.value, _both(module, difference)


@torch.no_grad()
def both_paths_agree(device: str) -> Errors:
    """Eq. 2 as printed and the fast path give one result, in units of the row's condition max(1, Σ|weights|)."""
    x = _draw(device, 2, TOKENS, WIDTH)
    for kernel in Kernel:
        for scheme in (*(scheme for scheme in Position if scheme is not Position.NONE), None):
            for filter in Filter:
                positions = (scheme,) if scheme else ()
                module = _attention(device, kernel=kernel, positions=positions, filter=filter, stride=3, summary=1)
                unit = module.weights(x).abs().sum(-1, keepdim=True).clamp(min=1)
                outputs = []
                for module.path in ("literal", "fused"):
                    outputs.append(module.smooth(x) / unit)
                name = f"{kernel.value}, {scheme.value if scheme else 'none'}, {filter.value}"
                yield name, _largest(outputs[0] - outputs[1])


def both_paths_agree_on_long_rows(device: str) -> Errors:
    """The same where the fast path goes block by block, and the gradients of all parameters, in units of the largest.

    In both number formats; what is found in float32 is held against Eq. 2 in float64.
    """
    schemes: list[Position | None] = [scheme for scheme in Position if scheme is not Position.NONE]
    variants = [(Kernel.EXPONENTIAL, scheme, Filter.CAUSAL, Value.WITHOUT_POSITION) for scheme in [*schemes, None]]
    variants += [(kernel, None, Filter.CAUSAL, Value.TABLE) for kernel in Kernel]
    for scheme in (Position.LOOKUP, Position.RELATIVE):
        variants += [(Kernel.EXPONENTIAL, scheme, filter, Value.TABLE) for filter in Filter if filter != Filter.CAUSAL]
    for kernel, position, filter, value in variants:
        positions = (position,) if position else ()
        module = _attention(device, kernel=kernel, positions=positions, filter=filter, value=value, stride=20)
        x = _draw(device, LONG_BATCH, LONG, WIDTH)
        with torch.no_grad():
            unit = module.weights(x).abs().sum(-1, keepdim=True).clamp(min=1)
        expected = _with_gradients(module, "literal", x, unit)
        name = ", ".join((kernel.value, position.value if position else "none", value.value, filter.value))
        found = _with_gradients(module, "fused", x, unit)
        yield f"{name}, float64", _largest(*map(torch.sub, found, expected)), TOLERANCE
        if kernel is not Kernel.LINEAR:  # whose gradient has no bound that a float32 could keep to
            found = _with_gradients(module.float(), "fused", x.float(), unit.float())
            yield f"{name}, float32", _largest(*map(torch.sub, found, expected)), TOLERANCE_IN_FLOAT32


def _with_gradients(
    module: KernelAttention, path: Literal["literal", "fused"], x: Tensor, unit: Tensor
) -> tuple[Tensor, Tensor]:
    """The output, in units of its condition, and the gradients of all parameters, in units of the largest: float64."""
    module.path = path
    module.zero_grad()
    output = module.smooth(x) / unit
    loss = (output * _draw(str(x.device), *output.shape, seed=3).to(output.dtype)).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    found = [one.grad.double().flatten() for one in module.parameters() if one.grad is not None]
    gradients = torch.cat(found)
    return output.detach().double(), gradients / gradients.abs().max()


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

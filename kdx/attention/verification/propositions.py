"""What theory demands of the words of kdx: the properties of every attention, and propositions on some words.

A proposition is a function that returns how far the modules are from it, on both paths where the path matters, in
float64, on random features of a fixed seed.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from kdx.attention.families import FAMILIES
from kdx.attention.kernels import KERNELS
from kdx.attention.module import KernelAttention
from kdx.attention.positions import POSITIONS
from kdx.attention.verification.properties import (
    AXES,
    TOKENS,
    WIDTH,
    Finding,
    check_device,
    difference,
    draw,
    findings_of,
    held,
    made,
)
from kdx.attention.verification.rounding import ROUNDINGS, condition, largest, roundings
from kdx.vocabulary import Maps, OutputGate, QKNorm, Symmetry

BLIND_TO_ORDER = tuple(known.word for known in KERNELS.definitions() if not known.sees_positions)
# What concerns the whole attention and is no word of an axis.
WHOLE: tuple[dict[str, Any], ...] = (
    {"qk_norm": QKNorm.L2},
    {"qk_norm": QKNorm.RMS},
    {"kv_heads": 1},
    {"maps": Maps.DIFFERENTIAL},
    {"output_gate": OutputGate.SIGMOID},
)
TOLERANCES_ON_LONG_ROWS = {
    # A dot product adds the sums over the whole row to the rest and takes them away again, and is rounded at their size
    # in between. Counted from the middle they are at most 252 here; 180 roundings were found.
    "forgetting": 16 * ROUNDINGS,
    # The gradient of its network is a sum over all pairs of the rows; in float32 58 were found.
    "fire": 4 * ROUNDINGS,
}

Errors = Iterator[tuple[str, float]]
"""(variant, error) one after the other."""


def findings(device: str) -> Iterator[Finding]:
    """Check every word of kdx for the properties of an attention, and every proposition on the words it speaks of.

    Raises:
        KdxError: there is no such device.
    """
    check_device(device)
    for family in FAMILIES:
        for word in family if family.axis in AXES else ():
            for finding in findings_of(family[word], device):
                tolerance = TOLERANCES_ON_LONG_ROWS.get(word, 0.0) if finding.check.endswith("long rows") else 0.0
                yield finding._replace(tolerance=max(finding.tolerance, tolerance))
    for choices in WHOLE:
        name = ", ".join(f"{name} {choice}" for name, choice in choices.items())
        module = made(device, {"positions": ("rotary",), "filter": "causal", **choices})
        yield from held(name, module, draw(device, 2, TOKENS, WIDTH), causal=True)
    for proposition, errors in PROPOSITIONS.items():
        for variant, error in errors(device):
            yield Finding(proposition, variant, error, 0.0 if proposition in MUST_DIFFER else ROUNDINGS)


def permutation_equivariance(device: str) -> Errors:
    """Without a mask and without positions, permuting the tokens permutes the output (Tsai et al. 2019, Prop. 1)."""
    x, order = draw(device, 2, TOKENS, WIDTH), torch.randperm(TOKENS, generator=torch.Generator().manual_seed(2))
    permuted = (lambda module, x: module(x[:, order]), lambda module, x: module(x)[:, order])
    for kernel in BLIND_TO_ORDER:
        yield kernel, difference(made(device, {"kernel": kernel}), *permuted, x)


@torch.no_grad()
def a_mask_breaks_permutation_equivariance(device: str) -> Errors:
    """With a causal filter the same permutation changes the output."""
    x, order = draw(device, 2, TOKENS, WIDTH), torch.arange(TOKENS).flip(0)
    for kernel in KERNELS:
        module = made(device, {"kernel": kernel, "filter": "causal"})
        yield kernel, _short(module(x[:, order]) - module(x)[:, order], 1e-3)


def one_causal_layer_is_blind_to_the_order_of_its_prefix(device: str) -> Errors:
    """Without positions, the last output does not change when the tokens before it are permuted."""
    x = draw(device, 2, TOKENS, WIDTH)
    order = torch.tensor([*reversed(range(TOKENS - 1)), TOKENS - 1], device=device)
    last = (lambda module, x: module(x[:, order])[:, -1:], lambda module, x: module(x)[:, -1:])
    for kernel in BLIND_TO_ORDER:
        yield kernel, difference(made(device, {"kernel": kernel, "filter": "causal"}), *last, x)


@torch.no_grad()
def two_causal_layers_are_not(device: str) -> Errors:
    """A second layer reads, at each place of the prefix, what had come before that place."""
    x = draw(device, 2, TOKENS, WIDTH)
    permuted = torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1)
    for kernel in KERNELS:
        first, second = (made(device, {"kernel": kernel, "filter": "causal"}) for _ in range(2))
        stacked = [second(y + first(y))[:, -1] for y in (x, permuted)]
        yield kernel, _short(stacked[0] - stacked[1], 1e-6)


@torch.no_grad()
def symmetric_gram_matrices(device: str) -> Errors:
    """With one projection for queries and keys, the Gram matrix is symmetric and positive semi-definite."""
    x = draw(device, 2, TOKENS, WIDTH)
    for known in KERNELS.definitions():
        for norm in QKNorm if known.positive_semi_definite else ():
            module = made(device, {"kernel": known.word, "symmetry": Symmetry.SYMMETRIC, "qk_norm": norm})
            unit = condition(_gram, module, x)
            asymmetry = roundings(_gram(module, x), _gram(module, x).transpose(-2, -1), unit)
            unit, found = condition(_eigenvalues, module, x), _eigenvalues(module, x)
            name = known.word if norm is QKNorm.NONE else f"{known.word}, qk_norm {norm}"
            yield name, largest([asymmetry, roundings(found, found.clamp(min=0), unit)])


def shift_invariance(device: str) -> Errors:
    """Schemes that see distances only do not change when every position moves alike."""
    x, positions = draw(device, 2, TOKENS, WIDTH), torch.arange(TOKENS, device=device)
    here, there = (lambda module, x, shift=shift: module(x, query_positions=positions + shift) for shift in (0, 5))
    for known in POSITIONS.definitions():
        if not known.absolute:
            yield known.word, difference(made(device, {"positions": (known.word,), "filter": "causal"}), here, there, x)


def the_norm_of_the_query_is_not_seen(device: str) -> Errors:
    """Homogeneous kernels divide it out of Eq. 2."""
    x, y = draw(device, 2, TOKENS, WIDTH), draw(device, 2, TOKENS, WIDTH, seed=5)
    longer = (lambda module, x, y: module.smooth(3 * x, y), lambda module, x, y: module.smooth(x, y))
    for known in KERNELS.definitions():
        if known.blind_to_query_norm:
            yield known.word, difference(made(device, {"kernel": known.word, "bias": False}), *longer, x, y)


def _short(change: Tensor, least: float) -> float:
    """How far the largest change falls short of what it must be at least; NaN stays."""
    return float((least - change.abs().max()).clamp(min=0))


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


PROPOSITIONS: dict[str, Callable[[str], Errors]] = {
    "permutation equivariance without a mask": permutation_equivariance,
    "none with a mask": a_mask_breaks_permutation_equivariance,
    "one causal layer is blind to the order of its prefix": one_causal_layer_is_blind_to_the_order_of_its_prefix,
    "two causal layers are not": two_causal_layers_are_not,
    "symmetric Gram matrices are positive semi-definite": symmetric_gram_matrices,
    "relative schemes are shift-invariant": shift_invariance,
    "the norm of the query is not seen": the_norm_of_the_query_is_not_seen,
}
MUST_DIFFER = ("none with a mask", "two causal layers are not")
"""The propositions that two results differ, of which no rounding makes up for a part."""

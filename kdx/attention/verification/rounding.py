"""The unit of an error: the cost of rounding in the computation.

Eq. 2 is o = Σ w v / Σ w, so errors δw of the weights move it by Σ δw (v − o) / Σ w. A kernel with both signs has rows
whose sum nearly cancels: κ = Σ|w| / |Σ w| is large, and so is o, up to κ max|v|. Weights with a relative error ε each
then cost up to ε κ (1 + κ) max|v|: the square of κ, not its first power. Nor is ε that of the number format, since a
score is itself a sum of products of sums, in which terms cancel, and the angle of a sinusoid is rounded too.

This needs no formula for each kernel, scheme and path. To first order all of it is the condition of the result: how far
the result moves when each number that it is computed from moves by its rounding [Higham 2002, Sec. 1.6]. The condition
is measured in float64, by moving all numbers at random [Parker 1997, Monte Carlo arithmetic]. In this unit the error of
every variant has the same size, for any kernel, size, scale and number format.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from kdx.attention.encodings.sinusoidal import Sinusoidal

ROUNDINGS = 32.0
"""Largest error that counts as rounding."""

# Small enough that the result moves in proportion, and large enough that float64 keeps half its digits of the move.
_MOVE = 2.0**-30


def condition(compute: Callable[..., Tensor], module: nn.Module, *inputs: Tensor, draws: int = 8) -> Tensor:
    """Return how far each row of a result moves per relative move of the numbers that it is computed from.

    Args:
        compute: returns the result in float64, (…, T, D), for the module and the inputs.
        module: module whose parameters, buffers and angles of sinusoids are moved.
        inputs: inputs in float64, which are moved too.
        draws: number of random directions. With fewer, the condition of some row may be measured too small.

    Returns:
        (…, T, 1): the largest root mean square of a row's moves, plus its largest number, which every path rounds.
    """
    return with_condition(compute, module, *inputs, draws=draws)[1]


def with_condition(
    compute: Callable[..., Tensor], module: nn.Module, *inputs: Tensor, draws: int
) -> tuple[Tensor, Tensor]:
    """Return a result and its condition; arguments as in `condition`."""
    exact = compute(module, *inputs).detach()
    generator = torch.Generator().manual_seed(0)

    def moved(number: Tensor) -> Tensor:
        normal = torch.randn(number.shape, generator=generator, dtype=torch.float64)
        return number.detach() * (1 + _MOVE * normal.to(number.device))

    def moved_angles(sinusoid: nn.Module, positions: tuple[Tensor]) -> tuple[Tensor]:
        return (moved(positions[0]),)

    squares, before = torch.zeros_like(exact), numbers_of(module)
    sinusoids = [part for part in module.modules() if isinstance(part, Sinusoidal)]
    hooks = [sinusoid.register_forward_pre_hook(moved_angles) for sinusoid in sinusoids]
    for _ in range(draws):
        set_numbers(module, map(moved, before))
        squares += ((compute(module, *map(moved, inputs)).detach() - exact) / _MOVE).square()
    set_numbers(module, before)
    for hook in hooks:
        hook.remove()
    return exact, (squares / draws).sqrt().amax(-1, keepdim=True) + exact.abs().amax(-1, keepdim=True)


def numbers_of(module: nn.Module) -> list[Tensor]:
    """Return the numbers of a module's parameters and buffers, without those of integers, for `set_numbers`."""
    return [tensor.data for tensor in _tensors(module)]


def set_numbers(module: nn.Module, numbers: Iterable[Tensor]) -> None:
    """Put other numbers in the places of a module's; none is copied, which would take longer than all computations."""
    for tensor, number in zip(_tensors(module), numbers, strict=True):
        tensor.data = number


def _tensors(module: nn.Module) -> list[Tensor]:
    return [tensor for tensor in (*module.parameters(), *module.buffers()) if tensor.is_floating_point()]


def roundings(computed: Tensor, expected: Tensor, condition: Tensor) -> float:
    """Return the largest difference, in roundings of the number format of `computed`; NaN if any difference is.

    Args:
        computed: (…, T, D)
        expected: float64, (…, T, D).
        condition: condition of `expected`, (…, T, 1). Where it is 0 nothing was computed, and all must be 0.
    """
    difference = (computed.detach().double() - expected.detach().double()).abs()
    in_conditions = float((difference / condition.clamp(min=torch.finfo(torch.float64).tiny)).max())
    return in_conditions / torch.finfo(computed.dtype).eps


def largest(errors: Sequence[float]) -> float:
    """Return the largest error; NaN if any is, which `max` would lose."""
    return float(torch.tensor(errors, dtype=torch.float64).max())

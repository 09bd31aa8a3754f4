"""The arguments of `KernelAttention` that a feature space leaves as they are: described, and refused, there."""

import inspect
from collections.abc import Iterable

from kdx.attention.interfaces import KernelFunction
from kdx.attention.kernels import KERNELS
from kdx.attention.module import KernelAttention

FEATURES = (
    "kernel",
    "symmetry",
    "normaliser",
    "head_width",
    "qk_norm",
    "kv_heads",
    "output_gate",
    "bias",
    "dropout",
    "path",
)
"""Those that have to do with features alone, in every space."""
PLACED = (*FEATURES, "value", "filter", "encoding", "max_positions", "reach")
"""And, in spaces whose tokens stand somewhere, those that have to do with positions."""


def check(given: Iterable[str], parts: tuple[str, ...]) -> None:
    """Refuse what a space that computes the kernel itself would leave out; options of its parts it does not.

    Raises:
        ValueError: an argument that is not among those parts.
    """
    others = inspect.signature(KernelAttention).parameters.keys() - set(parts)
    for name in given:
        if name in others:
            raise ValueError(f"{name}: not in this space; allowed: {', '.join(parts)}, and options of parts")


def check_kernel(kernel: KernelFunction, space: str) -> None:
    """Refuse a kernel that looks at places in a sequence, where a space has none.

    Raises:
        ValueError: it does.
    """
    if kernel.sees_positions:
        able = ", ".join(known.word for known in KERNELS.definitions() if not known.sees_positions)
        raise ValueError(f"kernel: it weighs by places in a sequence, and this is a {space}; allowed: {able}")

"""Kernels on the non-positional features: those of Table 2 of Tsai et al. 2019, then others."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdx.definitions import Family, PartDefinition

if TYPE_CHECKING:
    from kdx.attention.interfaces import KernelFunction


@dataclass(frozen=True)
class KernelDefinition(PartDefinition):
    """See `kdx.attention.interfaces.KernelFunction`."""

    normaliser: str
    gives: str
    sees_positions: bool


KERNELS: "Family[KernelFunction, KernelDefinition]" = Family(
    "kernel",
    KernelDefinition,
    "kdx.attention.interfaces:KernelFunction",
    {
        "linear": "kdx.attention.kernels.linear:Linear",
        "polynomial": "kdx.attention.kernels.polynomial:Polynomial",
        "exponential": "kdx.attention.kernels.exponential:Exponential",
        "rbf": "kdx.attention.kernels.rbf:RBF",
        "cosine": "kdx.attention.kernels.cosine:Cosine",
        "laplacian": "kdx.attention.kernels.laplacian:Laplacian",
        "student-t": "kdx.attention.kernels.student_t:StudentT",
        "elu": "kdx.attention.kernels.elu:ELU",
        "relu-squared": "kdx.attention.kernels.relu_squared:ReLUSquared",
        "favor": "kdx.attention.kernels.favor:FAVOR",
        "cosformer": "kdx.attention.kernels.cosformer:CosFormer",
        "taylor": "kdx.attention.kernels.taylor:Taylor",
        "hedgehog": "kdx.attention.kernels.hedgehog:Hedgehog",
    },
)

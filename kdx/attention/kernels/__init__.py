"""Kernels on the non-positional features (Sec. 2.2.2 and Table 2 of Tsai et al. 2019)."""

from kdx.attention.contracts import KernelFunction
from kdx.attention.kernels.exponential import Exponential
from kdx.attention.kernels.rbf import RBF
from kdx.axes import Kernel

KERNELS: dict[Kernel, type[KernelFunction]] = {
    Kernel.EXPONENTIAL: Exponential,
    Kernel.RBF: RBF,
}

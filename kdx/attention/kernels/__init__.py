"""Kernels on the non-positional features: those of Table 2 of Tsai et al. 2019, then others."""

from kdx.attention.interfaces import KernelFunction
from kdx.attention.kernels.cosine import Cosine
from kdx.attention.kernels.elu import ELU
from kdx.attention.kernels.exponential import Exponential
from kdx.attention.kernels.laplacian import Laplacian
from kdx.attention.kernels.linear import Linear
from kdx.attention.kernels.polynomial import Polynomial
from kdx.attention.kernels.rbf import RBF
from kdx.attention.kernels.relu_squared import ReLUSquared
from kdx.attention.kernels.student_t import StudentT
from kdx.axes import Kernel

KERNELS: dict[Kernel, type[KernelFunction]] = {
    Kernel.LINEAR: Linear,
    Kernel.POLYNOMIAL: Polynomial,
    Kernel.EXPONENTIAL: Exponential,
    Kernel.RBF: RBF,
    Kernel.COSINE: Cosine,
    Kernel.LAPLACIAN: Laplacian,
    Kernel.STUDENT_T: StudentT,
    Kernel.ELU: ELU,
    Kernel.RELU_SQUARED: ReLUSquared,
}

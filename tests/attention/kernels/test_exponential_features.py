import torch
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention.kernels.exponential_features import ExponentialFeatures


class Doubled(ExponentialFeatures):
    """Exponents 2x."""

    def exponents(self, features: Tensor) -> Tensor:
        assert features.dtype is not torch.bfloat16
        return 2 * features


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_logarithm_and_weight_together_are_the_kernel() -> None:
    kernel, q, k = KernelAttention(8, 2, kernel=Doubled).kernel, draw(1, 2, 3, 4), draw(1, 2, 5, 4) + 1
    found = kernel.log_weight(q, k).exp() * kernel.weight(q, k)
    torch.testing.assert_close(found, (2 * q).exp() @ (2 * k).exp().transpose(-2, -1))
    assert kernel.weight(q, k).max() <= 4


def test_a_normaliser_that_does_not_cancel_a_factor_gets_the_kernel_itself() -> None:
    module, x = KernelAttention(8, 2, kernel=Doubled, normaliser="length").double(), draw(1, 150, 8)
    projected = module._project(x, None)
    kernel = (2 * projected.query).exp() @ (2 * projected.key).exp().transpose(-2, -1)
    for module.path in ("literal", "fused"):
        torch.testing.assert_close(module.smooth(x), kernel @ projected.value / 150)


def test_exponents_stay_in_32_bits_under_autocast() -> None:
    module, x = KernelAttention(8, 2, kernel=Doubled), draw(1, 150, 8).float()
    for module.path in ("literal", "fused"):
        with torch.autocast("cpu", torch.bfloat16):
            assert module(x).isfinite().all()

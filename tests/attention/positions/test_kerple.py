import math

import pytest
import torch

from kdx.attention.interfaces import Settings
from kdx.attention.positions.kerple import KERPLELog, KERPLEPower


def test_log_is_a_power_of_one_plus_a_multiple_of_the_distance() -> None:
    scheme = KERPLELog(Settings(8, 2, 4))
    a, p = (0.01 + torch.nn.functional.softplus(raw) for raw in (scheme.scale, scheme.power))
    torch.testing.assert_close(scheme.bias(torch.tensor([0, -5]))[:, 1], -p * torch.log(1 + 5 * a))


def test_power_is_at_most_two() -> None:
    scheme = KERPLEPower(Settings(8, 2, 4))
    torch.nn.init.constant_(scheme.power, 50.0)
    a = 0.01 + torch.nn.functional.softplus(scheme.scale)
    torch.testing.assert_close(scheme.bias(torch.tensor([0, 3]))[:, 1], -9 * a)


@pytest.mark.parametrize("kind", [KERPLELog, KERPLEPower])
def test_both_begin_evenly_spread_over_the_ranges_of_the_authors(kind: type) -> None:
    torch.manual_seed(0)
    scheme = kind(Settings(4000, 4000, 1)).double()
    near, far = (-scheme.bias(torch.tensor(distance)) for distance in (1, 100))
    a, p = (0.01 + torch.nn.functional.softplus(raw) for raw in (scheme.scale, scheme.power))
    if kind is KERPLEPower:
        torch.testing.assert_close(near, a)
        p = (far / near).log() / math.log(100)
    for found, least, most in ((a, 0.01, 1.01), (p, 0.01, 2.01)):
        assert least <= found.min() and found.max() <= most
        quartiles = torch.quantile((found - least) / (most - least), torch.tensor([0.25, 0.5, 0.75]).double())
        torch.testing.assert_close(quartiles, torch.tensor([0.25, 0.5, 0.75]).double(), atol=0.03, rtol=0)


@pytest.mark.parametrize("kind", [KERPLELog, KERPLEPower])
def test_the_factor_is_a_positive_semi_definite_kernel_with_finite_gradients(kind: type) -> None:
    torch.manual_seed(0)
    scheme, positions = kind(Settings(8, 4, 2)).double(), torch.arange(12)
    bias = scheme.bias(positions.unsqueeze(-1) - positions)
    assert (torch.linalg.eigvalsh(bias.exp()) > -1e-12).all()
    assert (bias.diagonal(dim1=-2, dim2=-1) == 0).all()
    bias.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in scheme.parameters())

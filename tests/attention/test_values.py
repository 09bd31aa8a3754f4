"""Each value function is its formula."""

import torch

from kdx.attention import KernelAttention
from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.values.with_position import WithPosition
from kdx.attention.values.without_position import WithoutPosition

# table


def test_values_are_those_without_position_and_a_vector_for_each_distance() -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, value="table", clip=1, filter="causal").double()
    plain = KernelAttention(8, 2, filter="causal").double()
    plain.load_state_dict(module.state_dict(), strict=False)
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    weights, table = module.weights(x), module.value_function.table.weight
    of_distance = [weights[..., 3, :3].sum(-1), weights[..., 3, 3]]  # one or more before, itself
    expected = sum(weight.unsqueeze(-1) * table[:, row] for row, weight in enumerate(of_distance))
    for module.path in ("literal", "fused"):
        torch.testing.assert_close((module.smooth(x) - plain.smooth(x))[:, :, 3], expected)


# with_position


def test_values_are_made_of_f_plus_t() -> None:
    place = TokenPositions(torch.arange(3), lambda positions: positions.unsqueeze(-1) * torch.tensor([10.0, 0.0]))
    features = WithPosition(Settings(2, 1, 2)).features(torch.ones(1, 3, 2), place)
    assert features.tolist() == [[[1, 1], [11, 1], [21, 1]]]


# without_position


def test_values_are_made_of_f() -> None:
    features = torch.ones(1, 3, 2)
    assert WithoutPosition(Settings(2, 1, 2)).features(features, TokenPositions(torch.arange(3), None)) is features

"""Each value function is its formula."""

import torch

from kdx.attention import KernelAttention

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


# without_position

import pytest
import torch

from kdx.attention.encodings.learned import Learned


def test_a_position_is_a_row_of_the_table() -> None:
    encoding = Learned(4, max_positions=6)
    positions = torch.tensor([[5, 0], [1, 1]])
    assert torch.equal(encoding(positions), encoding.weight[positions])


@pytest.mark.parametrize("outside", [-1, 6])
def test_a_position_outside_the_table_is_refused(outside: int) -> None:
    with pytest.raises(ValueError) as refusal:
        Learned(4, max_positions=6)(torch.tensor([0, outside]))
    assert str(refusal.value) == f"positions: {outside} is not in the learned table; allowed: 0 to 5 (`max_positions`)"


def test_rows_start_with_unit_length_on_average() -> None:
    torch.manual_seed(0)
    assert Learned(64, max_positions=1000).weight.square().sum(-1).mean().item() == pytest.approx(1, abs=0.05)

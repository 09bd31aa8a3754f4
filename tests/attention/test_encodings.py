"""Each encoding is its formula."""

import math

import pytest
import torch

from kdx.attention.encodings.learned import Learned
from kdx.attention.encodings.sinusoidal import Sinusoidal

# learned


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


# sinusoidal


def test_sines_and_cosines_alternate() -> None:
    t = Sinusoidal(6, 0).double()(torch.tensor([0, 3]))
    assert t[0].tolist() == [0, 1, 0, 1, 0, 1]
    for p in range(3):
        angle = 3 / 10000 ** (2 * p / 6)
        assert t[1, 2 * p].item() == pytest.approx(math.sin(angle), abs=1e-15)
        assert t[1, 2 * p + 1].item() == pytest.approx(math.cos(angle), abs=1e-15)


@pytest.mark.parametrize("width", [2, 4, 12])
def test_fairseqs_exponents_reach_from_0_to_1(width: int) -> None:
    t = Sinusoidal(width, 0, sinusoids="fairseq").double()(torch.tensor([3]))[0]
    for p in range(width // 2):
        angle = 3 / 10000 ** (p / (width / 2 - 1) if p else 0)
        assert t[2 * p].item() == pytest.approx(math.sin(angle), abs=1e-15)
        assert t[2 * p + 1].item() == pytest.approx(math.cos(angle), abs=1e-15)


def test_shape_and_number_format_follow_positions_and_module() -> None:
    positions = torch.zeros(2, 3, dtype=torch.long)
    assert Sinusoidal(4, 0)(positions).shape == (2, 3, 4)
    assert Sinusoidal(4, 0).double()(positions).dtype is torch.float64
    assert Sinusoidal(4, 0).bfloat16()(positions).dtype is torch.bfloat16

import torch

from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.values.with_position import WithPosition


def test_values_are_made_of_f_plus_t() -> None:
    place = TokenPositions(torch.arange(3), lambda positions: positions.unsqueeze(-1) * torch.tensor([10.0, 0.0]))
    features = WithPosition(Settings(2, 1, 2)).features(torch.ones(1, 3, 2), place)
    assert features.tolist() == [[[1, 1], [11, 1], [21, 1]]]

import torch

from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.values.without_position import WithoutPosition


def test_values_are_made_of_f() -> None:
    features = torch.ones(1, 3, 2)
    assert WithoutPosition(Settings(2, 1, 2)).features(features, TokenPositions(torch.arange(3), None)) is features

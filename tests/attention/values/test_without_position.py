import torch

from kdx.attention.contracts import Options, Place
from kdx.attention.values import WithoutPosition


def test_values_are_made_of_f() -> None:
    features = torch.ones(1, 3, 2)
    assert WithoutPosition(Options(2, 1, 2)).features(features, Place(torch.arange(3), None)) is features

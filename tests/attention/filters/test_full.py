import torch

from kdx.attention.filters.full import Full
from kdx.attention.interfaces import Settings


def test_every_key_is_seen() -> None:
    assert Full(Settings(4, 1, 4)).visible(torch.arange(3).unsqueeze(-1), torch.arange(4)) is None

import torch

from kdx.attention.interfaces import Settings
from kdx.attention.positions.alibi import ALiBi


def test_bias_falls_with_the_distance_at_a_rate_for_each_head() -> None:
    bias = ALiBi(Settings(8, heads=4, head_width=2)).bias(torch.tensor([-2, 0, 1]))
    assert bias.tolist() == [[-2 * m, 0, -m] for m in (1 / 4, 1 / 16, 1 / 64, 1 / 256)]


def test_it_learns_and_stores_nothing() -> None:
    assert not ALiBi(Settings(8, 4, 2)).state_dict()

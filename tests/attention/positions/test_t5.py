import torch

from kdx.attention.interfaces import Settings
from kdx.attention.positions.t5 import T5


def bucket_of(distance: int) -> int:
    scheme = T5(Settings(8, heads=1, head_width=8))
    with torch.no_grad():
        scheme.weight.copy_(torch.arange(64))
    return int(scheme.bias(torch.tensor([distance])).item())


def test_near_distances_have_a_bucket_each_and_far_ones_share() -> None:
    assert [bucket_of(-d) for d in range(17)] == list(range(17))
    assert bucket_of(-19) == 17
    assert bucket_of(-127) == bucket_of(-128) == bucket_of(-10000) == 31


def test_the_two_sides_differ() -> None:
    assert [bucket_of(d) for d in (1, 15, 500)] == [33, 47, 63]

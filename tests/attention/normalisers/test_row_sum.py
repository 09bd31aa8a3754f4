import torch

from kdx.attention.interfaces import Settings
from kdx.attention.normalisers.row_sum import RowSum

SETTINGS = Settings(4, 1, 4)


def test_total_is_the_raw_sum_and_nothing_where_it_is_zero() -> None:
    weight = torch.tensor([[1.0, -3.0], [0.0, 0.0]])
    assert RowSum(SETTINGS).total(weight, None).tolist() == [[-2.0], [1.0]]

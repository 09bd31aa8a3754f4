import torch

from kdx.attention.filters import Causal


def test_a_query_sees_itself_and_what_stands_before() -> None:
    visible = Causal().visible(torch.tensor([1, 3]).unsqueeze(-1), torch.tensor([0, 1, 2, 3, 4]))
    assert visible.tolist() == [[True, True, False, False, False], [True, True, True, True, False]]

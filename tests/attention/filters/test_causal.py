import torch

from kdx.attention.filters.causal import Causal
from kdx.attention.interfaces import Settings


def test_a_query_sees_itself_and_what_stands_before() -> None:
    visible = Causal(Settings(4, 1, 4)).visible(torch.tensor([1, 3]).unsqueeze(-1), torch.tensor([0, 1, 2, 3, 4]))
    assert visible.tolist() == [[True, True, False, False, False], [True, True, True, True, False]]


def test_no_query_of_a_block_sees_keys_after_its_last() -> None:
    causal = Causal(Settings(4, 1, 4))
    assert causal.seen(range(4, 6), range(2, 20)) == slice(0, 4)
    # One is left where there is none, to be hidden.
    assert causal.seen(range(2), range(5, 20)) == slice(0, 1)

import numpy as np
import pytest
import torch
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention.filters.top_k import TopK
from kdx.attention.interfaces import Settings
from kdx.vocabulary import Reach
from tests.attention import by_hand

SETTINGS = Settings(4, 1, 4, reach=Reach.BOTH)


def chosen(score: list[float], top_k: int, visible: Tensor | None = None) -> list[bool]:
    return TopK(SETTINGS, top_k=top_k).chosen(torch.tensor([score]), None, visible)[0].tolist()


def test_the_keys_of_the_largest_weights_are_seen() -> None:
    assert chosen([0.5, -1.0, 3.0, 2.0], 2) == [False, False, True, True]


def test_what_is_hidden_is_not_among_them() -> None:
    visible = torch.tensor([[True, True, False, True]])
    assert chosen([0.5, -1.0, 3.0, 2.0], 2, visible) == [True, False, False, True]
    assert all(chosen([0.5, -1.0, 3.0, 2.0], 2, torch.tensor([[False, True, False, False]]))[1:2])


def test_no_order_of_the_keys_breaks_a_tie() -> None:
    assert chosen([1.0, 2.0, 1.0, 0.0], 2) == [True, True, True, False]


def test_where_there_are_no_more_keys_than_that_all_are_seen() -> None:
    assert TopK(SETTINGS, top_k=3).chosen(torch.zeros(1, 3), None, None) is None


def test_weights_without_logarithm_count_as_they_are_and_times_their_factors() -> None:
    top, weight = TopK(SETTINGS, top_k=1), torch.tensor([[1.0, 4.0, -9.0]])
    assert top.chosen(None, weight, None).tolist() == [[False, True, False]]
    assert top.chosen(torch.tensor([[2.0, 0.0, 0.0]]), weight, None).tolist() == [[True, False, False]]
    # However small or large all factors are.
    for shift in (-1e4, 1e4):
        assert top.chosen(torch.tensor([[2.0, 0.0, 0.0]]) + shift, weight, None).tolist() == [[True, False, False]]


def test_in_a_decoder_nothing_later_is_chosen() -> None:
    assert TopK(Settings(4, 1, 4)).visible(torch.tensor([[1]]), torch.arange(3)).tolist() == [[True, True, False]]
    assert TopK(SETTINGS).visible(torch.tensor([[1]]), torch.arange(3)) is None
    assert TopK(Settings(4, 1, 4)).seen(range(4, 6), range(2, 20)) == slice(0, 4)
    assert TopK(SETTINGS).seen(range(4, 6), range(2, 20)) == slice(0, 18)


@pytest.mark.parametrize("reach", Reach)
def test_it_is_the_definition_token_by_token(reach: Reach) -> None:
    torch.manual_seed(0)
    module, x = KernelAttention(8, 2, filter="top-k", top_k=3, reach=reach).double(), by_hand.draw(9, 8)

    def largest(scores: np.ndarray, head: int, query: int) -> np.ndarray:
        kept = np.argsort(scores)[-3:]
        weights = np.zeros_like(scores)
        weights[kept] = by_hand.softmax(scores[kept])
        return weights

    expected = by_hand.smoothed(module, x, row=largest, sees=lambda i, j: j <= i or reach is Reach.BOTH)
    by_hand.same(module, x, expected)


def test_the_factor_of_a_position_has_its_say() -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, filter="top-k", top_k=1, positions=["alibi"]).double()
    with torch.no_grad():
        module.query.weight.zero_()
    # Without any content the nearest key weighs most, which is the query's own.
    weights = module.weights(by_hand.draw(1, 5, 8))
    torch.testing.assert_close(weights, torch.eye(5, dtype=torch.float64).expand_as(weights))

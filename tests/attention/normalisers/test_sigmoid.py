import numpy as np
import pytest
import torch

from kdx.attention import KernelAttention
from kdx.attention.interfaces import Settings
from kdx.attention.normalisers.sigmoid import Sigmoid
from tests.attention import by_hand


@pytest.mark.parametrize("bias", ["length", "none"])
@pytest.mark.parametrize("filter", ["full", "causal"])
def test_it_is_the_definition_token_by_token(bias: str, filter: str) -> None:
    """With the factor of the position inside."""
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser="sigmoid", sigmoid_bias=bias, filter=filter, positions=["alibi"]).double()
    x, slopes = by_hand.draw(9, 8), [2**-4, 2**-8]

    def sigmoid(scores: np.ndarray, head: int, query: int) -> np.ndarray:
        return 1 / (1 + np.exp(-scores) * (len(scores) if bias == "length" else 1))

    expected = by_hand.smoothed(
        module,
        x,
        score=lambda q, k, i, j, head: by_hand.scaled(q, k, i, j, head) - slopes[head] * abs(i - j),
        row=sigmoid,
        sees=lambda i, j: filter == "full" or j <= i,
    )
    by_hand.same(module, x, expected)


def test_rows_of_scores_near_zero_begin_with_a_sum_near_one() -> None:
    for keys in (10, 1000):
        weights = Sigmoid(Settings(4, 1, 4)).weights(torch.zeros(1, 1, 1, keys), None, None)
        assert weights.sum().item() == pytest.approx(1, rel=0.1)


def test_keys_that_are_not_seen_have_no_weight_and_do_not_count() -> None:
    visible = torch.tensor([[True, False, True], [False, False, False]])
    weights = Sigmoid(Settings(4, 1, 4)).weights(torch.zeros(1, 1, 2, 3), None, visible)
    torch.testing.assert_close(weights[0, 0], torch.tensor([[1 / 3, 0, 1 / 3], [0, 0, 0]]))


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "student-t", "elu", "relu-squared"])
def test_a_kernel_without_logarithm_is_refused(kernel: str) -> None:
    with pytest.raises(ValueError, match=f"normaliser: sigmoid has no meaning for kernel {kernel}; allowed: row-sum"):
        KernelAttention(8, 2, kernel=kernel, normaliser="sigmoid")

import numpy as np
import pytest
import torch

from kdx.attention import KernelAttention, smoother
from kdx.attention.interfaces import Settings
from kdx.attention.kernels import KERNELS
from kdx.attention.normalisers.softmax_plus_one import SoftmaxPlusOne
from tests.attention import by_hand


def plus_one(scores: np.ndarray, head: int, query: int) -> np.ndarray:
    return np.exp(scores) / (1 + np.exp(scores).sum())


@pytest.mark.parametrize("filter", ["full", "causal"])
@pytest.mark.parametrize("tokens", [9, 300], ids=["one call", "several"])
def test_it_is_the_definition_token_by_token(filter: str, tokens: int) -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser="softmax-plus-one", filter=filter).double()
    x = by_hand.draw(tokens, 8)
    by_hand.same(module, x, by_hand.smoothed(module, x, row=plus_one, sees=lambda i, j: filter == "full" or j <= i))


@pytest.mark.parametrize("kernel", ["rbf", "cosine", "laplacian", "polynomial", "student-t", "elu", "relu-squared"])
@pytest.mark.parametrize("tokens", [5, 140])
def test_every_positive_kernel_has_one_more_in_its_row_sum(kernel: str, tokens: int) -> None:
    """Where a term of the query alone would cancel without the one, too."""
    torch.manual_seed(0)
    module = KernelAttention(8, 2, kernel=kernel, normaliser="softmax-plus-one").double()
    x = 2 * by_hand.draw(1, tokens, 8)
    projected = module._project(x, None)
    log_weight = module.kernel.log_weight(projected.query, projected.key)
    raw = module.kernel.weight(projected.query, projected.key) if log_weight is None else log_weight.exp()
    expected = (raw / (1 + raw.sum(-1, keepdim=True))) @ projected.value
    for module.path in ("literal", "fused"):
        torch.testing.assert_close(module.smooth(x), expected, rtol=0, atol=1e-10)


def test_log_weights_of_any_size_keep_the_one() -> None:
    log_weight = torch.tensor([[[[1000.0, 999.0], [-1000.0, -1001.0]]]], requires_grad=True)
    found = smoother.weights(log_weight, None, SoftmaxPlusOne(Settings(4, 1, 4)))
    torch.testing.assert_close(found, torch.tensor([[[[0.7310586, 0.2689414], [0.0, 0.0]]]]))
    found[..., 0].sum().backward()
    torch.testing.assert_close(log_weight.grad, torch.tensor([[[[0.1966119, -0.1966119], [0.0, 0.0]]]]))


def test_it_has_no_meaning_for_weights_with_a_sign() -> None:
    message = "normaliser: softmax-plus-one has no meaning for kernel linear; allowed: row-sum, length"
    with pytest.raises(ValueError, match=message):
        KernelAttention(8, 2, kernel="linear", normaliser="softmax-plus-one")
    assert KERNELS.definition("linear").gives == "signed weight"

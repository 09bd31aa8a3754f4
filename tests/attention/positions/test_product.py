import math

import pytest
import torch

from kdx.attention.encodings import ENCODINGS
from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.product import Product

T = ENCODINGS["sinusoidal"](8, 0)


def test_factor_is_eq_9_in_each_head() -> None:
    torch.manual_seed(0)
    scheme = Product(Settings(8, heads=2, head_width=3))
    at_query, at_key = TokenPositions(torch.arange(2, 6), T), TokenPositions(torch.arange(5), T)
    log_weight = scheme.log_weight(torch.zeros(1, 2, 4, 3), at_query, at_key)
    assert log_weight.shape == (2, 4, 5)
    matrix = scheme.projection.weight.T[:, 3:]  # of the second head
    expected = (at_query.vector[1] @ matrix) @ (at_key.vector[4] @ matrix) / math.sqrt(3)
    assert log_weight[1, 1, 4].item() == pytest.approx(expected.item())


def test_factor_is_a_symmetric_positive_kernel_free_of_the_batch() -> None:
    torch.manual_seed(0)
    scheme, place = Product(Settings(8, heads=2, head_width=4)), TokenPositions(torch.arange(6), T)
    log_weight = scheme.log_weight(torch.randn(3, 2, 6, 4), place, place).double()
    torch.testing.assert_close(log_weight, log_weight.transpose(-2, -1))
    assert (torch.linalg.eigvalsh(log_weight.exp()) > -1e-5).all()


def test_positions_by_row_give_a_factor_by_row() -> None:
    scheme = Product(Settings(8, heads=2, head_width=4))
    rows = TokenPositions(torch.tensor([[0, 1, 2], [5, 6, 7]]), T)
    both = scheme.log_weight(torch.zeros(2, 2, 3, 4), rows, rows)
    assert both.shape == (2, 2, 3, 3)
    second = TokenPositions(torch.tensor([5, 6, 7]), T)
    torch.testing.assert_close(both[1], scheme.log_weight(torch.zeros(1, 2, 3, 4), second, second))


@pytest.mark.parametrize(("length", "bias"), [(256, True), (257, False)])
def test_long_sequences_take_columns_instead_of_a_bias(length: int, bias: bool) -> None:
    scheme, place = Product(Settings(8, heads=2, head_width=4)), TokenPositions(torch.arange(length), T)
    query = torch.zeros(1, 2, length, 4)
    columns = scheme.dot_product(query, place, place, past=False)
    assert (columns is None) is bias
    if columns is not None:
        q, k = columns
        torch.testing.assert_close(q @ k.transpose(-2, -1) / 2, scheme.log_weight(query, place, place))

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention.interfaces import Settings
from kdx.attention.normalisers.entmax import Entmax
from tests.attention import by_hand

SETTINGS = Settings(4, 1, 4)


def entmax(scores: np.ndarray, alpha: float) -> np.ndarray:
    """By Newton's method on the one equation that τ solves, from below, where it rises to the root."""
    scaled = (alpha - 1) * (scores - scores.max())
    tau = -1.0
    for _ in range(200):
        above = np.clip(scaled - tau, 0, None)
        excess = (above ** (1 / (alpha - 1))).sum() - 1
        slope = (above[above > 0] ** (1 / (alpha - 1) - 1)).sum() / (alpha - 1)
        tau += excess / slope
    return np.clip(scaled - tau, 0, None) ** (1 / (alpha - 1))


def weights(scores: Tensor, alpha: float, visible: Tensor | None = None) -> Tensor:
    return Entmax(SETTINGS, alpha=alpha).weights(scores, None, visible)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 1.2, 1.9])
@pytest.mark.parametrize("filter", ["full", "causal"])
def test_it_is_the_definition_token_by_token(alpha: float, filter: str) -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser="entmax", alpha=alpha, filter=filter).double()
    x = 2 * by_hand.draw(9, 8)
    expected = by_hand.smoothed(
        module, x, row=lambda scores, *_: entmax(scores, alpha), sees=lambda i, j: filter == "full" or j <= i
    )
    by_hand.same(module, x, expected)


def test_sparsemax_of_two_scores_is_half_their_difference() -> None:
    expected = torch.tensor([[[[0.75, 0.25], [1.0, 0.0]]]])
    torch.testing.assert_close(weights(torch.tensor([[[[0.5, 0.0], [3.0, 0.0]]]]), 2.0), expected)


@settings(deadline=None)
@given(
    scores=st.lists(st.floats(-50, 50), min_size=1, max_size=12),
    alpha=st.sampled_from([1.01, 1.25, 1.5, 1.75, 2.0, 3.0, 10.0]),
    shift=st.floats(-1e3, 1e3),
)
def test_weights_are_shares_that_no_shift_of_the_row_changes(scores: list[float], alpha: float, shift: float) -> None:
    row = torch.tensor(scores, dtype=torch.float64)
    found = weights(row, alpha)
    assert (found >= 0).all()
    assert found.sum().item() == pytest.approx(1, abs=1e-9)
    # What weighs more is no less.
    assert (found[row.argsort()].diff() >= 0).all()
    torch.testing.assert_close(weights(row + shift, alpha), found, rtol=0, atol=1e-6 if alpha > 2 else 1e-9)


def test_near_one_it_is_softmax() -> None:
    scores = by_hand.draw(4, 6)
    torch.testing.assert_close(weights(scores, 1 + 1e-6), scores.softmax(-1), rtol=0, atol=1e-4)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 3.0])
def test_gradients_are_those_of_the_function(alpha: float) -> None:
    scores = by_hand.draw(5, 6).requires_grad_()
    visible = torch.ones(5, 6, dtype=torch.bool)
    visible[1, 2:], visible[2] = False, False
    assert torch.autograd.gradcheck(lambda scores: weights(scores, alpha, visible), (scores,))


def test_a_row_without_any_key_has_no_weights_and_no_nan() -> None:
    scores = torch.zeros(1, 3, requires_grad=True)
    found = weights(scores, 1.5, torch.zeros(1, 3, dtype=torch.bool))
    found.sum().backward()
    assert not found.any() and not scores.grad.any()


def test_a_long_row_in_32_bits_stays_near_64() -> None:
    scores = 4 * by_hand.draw(8, 5000)
    for alpha in (1.3, 1.5, 2.0):
        torch.testing.assert_close(weights(scores.float(), alpha).double(), weights(scores, alpha), rtol=0, atol=1e-5)

"""The local linear estimator is a weighted regression, and Eq. 2 at an endless ridge."""

import numpy as np
import pytest
import torch

from kdx.attention import KernelAttention
from kdx.attention.local_linear import LocalLinear
from tests.attention import by_hand
from tests.attention.by_hand import HEADS, WIDTH

CHOICES = {"smoother": "local-linear"}


def fitted(module: KernelAttention, x: torch.Tensor) -> np.ndarray:
    """The intercept of a weighted ridge regression of values on keys - query, by the normal equations: (H, T, D)."""
    query, key, value = (by_hand.heads(part, x, 4) for part in (module.query, module.key, module.value))
    ridge = np.exp(module.local_linear.log_ridge.detach().numpy().flatten())
    output = np.zeros_like(query)
    for head, i in np.ndindex(HEADS, len(x)):
        weights = by_hand.softmax(query[head, i] @ key[head, : i + 1].T / 2)
        design = np.hstack([np.ones((i + 1, 1)), key[head, : i + 1] - query[head, i]])
        penalty = np.diag([0.0] + [ridge[head]] * 4)
        normal = design.T @ (weights[:, None] * design) + penalty
        output[head, i] = np.linalg.solve(normal, design.T @ (weights[:, None] * value[head, : i + 1]))[0]
    return output


def test_every_path_is_a_weighted_regression_at_the_query() -> None:
    module, x = by_hand.attention(**CHOICES)
    for row in x:
        by_hand.same(module, row, fitted(module, row))


def test_values_on_a_line_are_found_even_where_no_key_is() -> None:
    """The average of Eq. 2 stays among the values of the keys: the bias that the line removes."""
    query, key = by_hand.draw(1, 1, 3, 2, seed=1) + 5, by_hand.draw(1, 1, 9, 2)
    line = by_hand.draw(2, 2, seed=2)
    fit = LocalLinear(1).double()
    torch.nn.init.constant_(fit.log_ridge, -30.0)
    even = torch.full((1, 1, 3, 9), 1 / 9, dtype=torch.float64)
    for weights in (fit.fused(even, query, key), fit.literal(even, query, key)):
        torch.testing.assert_close(weights @ (key @ line), query @ line, rtol=1e-6, atol=1e-6)


@torch.no_grad()
def test_at_an_endless_ridge_it_is_the_average() -> None:
    module, x = by_hand.attention(**CHOICES)
    plain, _ = by_hand.attention()
    plain.load_state_dict(module.state_dict(), strict=False)
    module.local_linear.log_ridge.fill_(40.0)
    for module.path in ("literal", "fused"):
        torch.testing.assert_close(module(x), plain(x))


@pytest.mark.parametrize("choices", [{}, {"kernel": "rbf", "positions": ["pope"]}, {"kv_heads": 1, "value": "table"}])
def test_blocks_of_a_long_row_give_what_the_whole_row_gives(choices: dict, monkeypatch) -> None:
    monkeypatch.setattr("kdx.attention.module.BLOCK", 2**14)
    x = torch.randn(1, 300, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    module, _ = by_hand.attention(**CHOICES, **choices)
    gradients = []
    for module.path in ("literal", "fused"):
        module.zero_grad()
        module(x).square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None]))
    torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-8)


def test_a_row_sums_to_1_with_weights_of_both_signs() -> None:
    module, x = by_hand.attention(**CHOICES)
    with torch.no_grad():
        module.local_linear.log_ridge.fill_(-4.0)
        weights = module.weights(x)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert weights.min() < 0


@pytest.mark.parametrize("choices", [{"kernel": "linear"}, {"normaliser": "softmax-plus-one"}], ids=str)
def test_weights_that_no_regression_has_are_refused(choices: dict) -> None:
    with pytest.raises(ValueError, match="smoother: a line is fitted with weights that are positive and sum to 1"):
        KernelAttention(WIDTH, HEADS, **CHOICES, **choices)

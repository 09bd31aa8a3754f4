"""Dropout on a CPU has the statistics of torch's own."""

import pytest
import torch

from kdx.models.dropout import Dropout

P = [0.1, 0.3, 0.5]


def dropped(p: float, *shape: int) -> torch.Tensor:
    torch.manual_seed(0)
    return Dropout(p)(torch.ones(shape)) == 0


@pytest.mark.parametrize("p", P)
def test_each_of_the_features_that_share_a_number_is_dropped_with_probability_p(p: float) -> None:
    count = 200_000
    shares = dropped(p, count, 4).double().mean(0)
    error = (p * (1 - p) / count) ** 0.5
    assert (shares - p).abs().max() < 4 * error + 2**-16


@pytest.mark.parametrize("p", P)
def test_features_are_dropped_independently(p: float) -> None:
    count = 200_000
    features = dropped(p, count, 16).double().T
    correlations = torch.corrcoef(features) - torch.eye(16)
    assert correlations.abs().max() < 5 / count**0.5


@pytest.mark.parametrize("p", P)
def test_kept_features_and_their_gradients_are_scaled_so_that_the_mean_stays(p: float) -> None:
    x = torch.randn(1000, 7, requires_grad=True)
    y = Dropout(p)(x)
    y.sum().backward()
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] / (1 - p), rtol=1e-4, atol=0)
    torch.testing.assert_close(x.grad, kept / (1 - p), rtol=1e-4, atol=0)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4)])
def test_any_shape_and_number_format(shape: tuple[int, ...]) -> None:
    for dtype in torch.float32, torch.float64, torch.bfloat16:
        y = Dropout(0.5)(torch.ones(shape, dtype=dtype))
        assert y.shape == shape and y.dtype is dtype
        assert set(y.flatten().tolist()) <= {0.0, 2.0}


def test_the_seed_decides_the_masks() -> None:
    dropout, x = Dropout(0.3), torch.ones(100)
    torch.manual_seed(1)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(1)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_nothing_is_dropped_in_an_evaluation_or_with_probability_zero() -> None:
    x = torch.ones(100)
    assert Dropout(0.3).eval()(x) is x
    assert torch.equal(Dropout(0.0)(x), x)

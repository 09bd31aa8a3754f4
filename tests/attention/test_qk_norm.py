import math

import numpy as np
import pytest
import torch

from kdx.attention import Cache, KernelAttention
from kdx.attention.kernels import KERNELS
from kdx.attention.qk_norm import EPSILON, L2Norm
from kdx.vocabulary import Symmetry
from tests.attention import by_hand

# They see no length of queries, or of both, without any normalisation.
BLIND = ("linear", "polynomial", "cosine", "cosformer")


def attention(**choices: object) -> KernelAttention:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, **choices).double()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(len(name))))
    return module


def test_l2_brings_queries_and_keys_to_one_learned_length() -> None:
    module, x = attention(qk_norm="l2", filter="causal"), by_hand.draw(7, 8)
    scale = math.exp(module.query_norm.log_scale.item())

    def unit(projected: np.ndarray) -> np.ndarray:
        # So that ⟨q, k⟩ / √4 is the scale times the cosine.
        return projected / np.sqrt((projected**2).sum(-1, keepdims=True)) * math.sqrt(scale * 2)

    by_hand.same(module, x, by_hand.smoothed(module, x, normalise=unit, sees=lambda i, j: j <= i))


def test_the_scale_of_l2_starts_where_vectors_of_unit_variance_are() -> None:
    assert L2Norm(16)(3 * torch.ones(2, 16)).norm(dim=-1).tolist() == pytest.approx([4.0, 4.0])
    assert not L2Norm(16)(torch.zeros(2, 16)).any()


@pytest.mark.parametrize("symmetry", Symmetry)
def test_rms_has_a_gain_for_queries_and_one_for_keys_unless_they_are_alike(symmetry: Symmetry) -> None:
    module, x = attention(qk_norm="rms", symmetry=symmetry), by_hand.draw(7, 8)
    gains = [norm.weight.detach().numpy() for norm in (module.query_norm, module.key_norm or module.query_norm)]
    assert (module.key_norm is None) is (symmetry is Symmetry.SYMMETRIC)
    assert all(gain.shape == (4,) for gain in gains)
    calls = iter(gains)

    def rms(projected: np.ndarray) -> np.ndarray:
        return projected / np.sqrt((projected**2).mean(-1, keepdims=True) + EPSILON) * next(calls)

    by_hand.same(module, x, by_hand.smoothed(module, x, normalise=rms))


@pytest.mark.parametrize("word", ["l2", "rms"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("symmetry", Symmetry)
@torch.no_grad()
def test_no_kernel_sees_how_long_queries_and_keys_are(word: str, kernel: str, symmetry: Symmetry) -> None:
    module, x = attention(qk_norm=word, kernel=kernel, symmetry=symmetry, bias=False), 1e4 * by_hand.draw(1, 6, 8)
    # So long that the ε of rms is nothing beside it.
    expected = module.weights(x)
    torch.testing.assert_close(module.weights(1e3 * x), expected, rtol=0, atol=1e-10 * float(expected.abs().max()) ** 2)
    plain = attention(kernel=kernel, symmetry=symmetry, bias=False)
    assert kernel in BLIND or not torch.allclose(plain.weights(1e-3 * x), plain.weights(1e-4 * x), atol=1e-3)


@pytest.mark.parametrize("word", ["l2", "rms"])
def test_positions_act_on_what_is_normalised(word: str) -> None:
    module, x = attention(qk_norm=word, positions=["rotary", "lookup"], filter="causal"), by_hand.draw(1, 6, 8)
    projected = module._project(x, None)
    torch.testing.assert_close(projected.query.norm(dim=-1), projected.raw.norm(dim=-1))
    torch.testing.assert_close(projected.raw, module.query_norm(module._heads(module.query, x)))
    # A turn keeps lengths only after the gain.
    cache = Cache()
    steps = [module(token, cache=cache) for token in x.split(1, 1)]
    torch.testing.assert_close(torch.cat(steps, 1), module(x), rtol=0, atol=1e-10)

"""Each kernel is its formula.

For `linear`, `polynomial`, `exponential`, `rbf`, `laplacian`, `student-t`, `elu` and `relu-squared` that is checked
with random vectors, in `test_golden`.
"""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from kdx.attention import KernelAttention
from kdx.attention.interfaces import Settings, Side
from kdx.attention.kernels import KERNELS
from kdx.attention.kernels.cosine import Cosine
from kdx.attention.kernels.exponential_features import ExponentialFeatures
from kdx.attention.kernels.favor import FAVOR
from kdx.attention.kernels.hedgehog import Hedgehog
from kdx.attention.kernels.rbf import RBF
from kdx.attention.kernels.taylor import Taylor
from kdx.attention.spaces.image import ImageAttention
from kdx.attention.spaces.multimodal import MultimodalAttention
from kdx.attention.spaces.set import SetAttention
from tests.attention import by_hand
from tests.attention.by_hand import HEAD_WIDTH, HEADS, WIDTH, attention, check

# several kernels


@pytest.mark.parametrize(("word", "key"), [("laplacian", [1.0, 0.0]), ("rbf", [1.0, 0.0]), ("polynomial", [0.0, 1.0])])
def test_the_gradient_is_zero_where_the_weight_has_its_extreme(word: str, key: list[float]) -> None:
    query = torch.tensor([[[[1.0, 0.0]]]], requires_grad=True)
    kernel = KERNELS[word](Settings(2, 1, 2))
    compute = kernel.weight if word == "polynomial" else kernel.log_weight
    compute(query, torch.tensor([[[key]]])).sum().backward()
    assert (query.grad == 0).all()


# cosformer


@pytest.mark.parametrize("filter", ["causal", "full"])
@pytest.mark.parametrize("tokens", [7, 140])
def test_every_path_of_cosformer_gives_what_a_loop_over_pairs_gives(tokens: int, filter: str) -> None:
    module, x = attention(kernel="cosformer", tokens=tokens, horizon=200, filter=filter)
    with torch.no_grad():
        module.query.bias.fill_(1.0)
        module.key.bias.fill_(1.0)  # so that a query finds a key alike

    def weigh(q, k, i, j, head):
        return np.maximum(q, 0) @ np.maximum(k, 0) * math.cos(math.pi / 2 * (i - j) / 200)

    check(module, x, weigh, later=filter == "full")


def test_a_position_beyond_the_horizon_is_refused() -> None:
    module = KernelAttention(8, 2, kernel="cosformer", horizon=4)
    assert module(torch.zeros(1, 5, 8)).isfinite().all()
    with pytest.raises(ValueError, match="positions: 5 is beyond the horizon; allowed: 0 to 4"):
        module(torch.zeros(1, 6, 8))


def test_a_space_without_places_in_a_sequence_refuses_it() -> None:
    for make in (
        lambda: SetAttention(8, 2, kernel="cosformer"),
        lambda: ImageAttention(8, 2, columns=3, kernel="cosformer"),
        lambda: MultimodalAttention([8, 8], 2, kernel="cosformer"),
    ):
        with pytest.raises(
            ValueError, match=r"kernel: cosformer weighs by places in a sequence; allowed here: linear, "
        ):
            make()


# cosine

COSINE_Q, COSINE_K = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, -7.0, 0.0]]]])
COSINE_KERNEL = Cosine(Settings(4, 1, 4))


def test_log_weight_is_the_cosine_times_a_temperature_of_the_root_of_d_at_first() -> None:
    expected = 2 * 4 / math.sqrt(6 * 58.25)
    assert COSINE_KERNEL.log_weight(COSINE_Q, COSINE_K).item() == pytest.approx(expected)
    assert COSINE_KERNEL.log_weight(3 * COSINE_Q, 5 * COSINE_K).item() == pytest.approx(expected)


def test_each_head_learns_its_temperature() -> None:
    kernel = Cosine(Settings(8, 2, 4))
    with torch.no_grad():
        kernel.log_temperature.copy_(torch.tensor([0.0, math.log(3)]))
    one, three = kernel.log_weight(COSINE_Q.expand(1, 2, 1, 4), COSINE_K.expand(1, 2, 1, 4)).flatten().tolist()
    assert three == pytest.approx(3 * one)


# exponential_features


class Doubled(ExponentialFeatures):
    """Exponents 2x."""

    def exponents(self, features: Tensor) -> Tensor:
        assert features.dtype is not torch.bfloat16
        return 2 * features


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_logarithm_and_weight_together_are_the_kernel() -> None:
    kernel, q, k = KernelAttention(8, 2, kernel=Doubled).kernel, draw(1, 2, 3, 4), draw(1, 2, 5, 4) + 1
    result = kernel.log_weight(q, k).exp() * kernel.weight(q, k)
    torch.testing.assert_close(result, (2 * q).exp() @ (2 * k).exp().transpose(-2, -1))
    assert kernel.weight(q, k).max() <= 4


def test_a_normaliser_that_does_not_cancel_a_factor_gets_the_kernel_itself() -> None:
    module, x = KernelAttention(8, 2, kernel=Doubled, normaliser="length").double(), draw(1, 150, 8)
    projected = module._project(x, None)
    kernel = (2 * projected.query).exp() @ (2 * projected.key).exp().transpose(-2, -1)
    for module.path in ("literal", "fused"):
        torch.testing.assert_close(module.smooth(x), kernel @ projected.value / 150)


# favor


def features(x: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """One at a time, as printed."""
    scaled = x / len(x) ** 0.25
    return np.array([math.exp(w @ scaled - scaled @ scaled / 2) for w in directions]) / math.sqrt(len(directions))


@pytest.mark.parametrize("tokens", [7, 140])
def test_every_path_of_favor_gives_what_a_loop_over_pairs_gives(tokens: int) -> None:
    module, x = attention(kernel="favor", random_features=6, tokens=tokens)
    directions = module.kernel.directions.numpy()
    check(module, x, lambda q, k, i, j, head: features(q, directions[head]) @ features(k, directions[head]))


def test_it_estimates_the_exponential_kernel_without_bias() -> None:
    torch.manual_seed(0)
    q, k = torch.randn(1, 2000, 1, 8, dtype=torch.float64), torch.randn(1, 2000, 1, 8, dtype=torch.float64)
    q, k = q[:, :1].expand_as(q), k[:, :1].expand_as(k)
    kernel = FAVOR(Settings(8 * 2000, 2000, 8), random_features=16).double()
    result = (kernel.log_weight(q, k).exp() * kernel.weight(q, k)).flatten()
    exact = math.exp(float(q[0, 0, 0] @ k[0, 0, 0]) / math.sqrt(8))
    assert abs(result.mean() - exact) < 4 * result.std() / math.sqrt(2000)


def test_directions_of_a_block_are_orthogonal_and_as_long_as_normal_vectors() -> None:
    torch.manual_seed(0)
    directions = FAVOR(Settings(16, 2, 8), random_features=20).directions
    assert directions.shape == (2, 20, 8)
    for head in directions:
        for block in head.split(8):
            gram = block @ block.T
            torch.testing.assert_close(gram, gram.diagonal().diag(), atol=1e-5, rtol=0)
    lengths = FAVOR(Settings(16, 2, 8), random_features=4000).directions.norm(dim=-1)
    assert lengths.square().mean().item() == pytest.approx(8, rel=0.05) and lengths.std() > 0.5


def test_directions_are_no_parameters_and_come_back_from_a_checkpoint() -> None:
    one, other = (KernelAttention(WIDTH, HEADS, kernel="favor", random_features=5) for _ in range(2))
    assert not list(one.kernel.parameters()) and not torch.equal(one.kernel.directions, other.kernel.directions)
    other.load_state_dict(one.state_dict())
    x = torch.randn(1, 5, WIDTH)
    assert torch.equal(one(x), other(x))


# hedgehog


@pytest.mark.parametrize("tokens", [7, 140])
def test_every_path_of_hedgehog_gives_what_a_loop_over_pairs_gives(tokens: int) -> None:
    module, x = attention(kernel="hedgehog", tokens=tokens)
    maps = module.kernel.map.detach().numpy()
    biases = module.kernel.bias.detach().numpy().reshape(HEADS, HEAD_WIDTH)

    def weigh(q, k, i, j, head):
        query, key = (maps[head] @ features + biases[head] for features in (q, k))
        return np.exp(query) @ np.exp(key) + np.exp(-query) @ np.exp(-key)

    check(module, x, weigh)


def test_the_map_begins_as_the_identity() -> None:
    kernel, x = Hedgehog(Settings(8, 2, 4)), torch.randn(1, 2, 3, 4)
    torch.testing.assert_close(kernel.exponents(x), torch.cat([x, -x], -1))


def test_a_factor_of_all_keys_is_left_out_and_one_of_each_query() -> None:
    torch.manual_seed(0)
    kernel, x = Hedgehog(Settings(8, 2, 4)).double(), torch.randn(1, 2, 3, 4, dtype=torch.float64)
    exact = kernel.exponents(x).exp()
    of_query, of_key = (exact / kernel.feature_map(x, side) for side in (Side.QUERY, Side.KEY))
    torch.testing.assert_close(of_query, of_query[..., :1].expand_as(of_query))
    torch.testing.assert_close(of_key, of_key[..., :1, :1].expand_as(of_key))
    assert not torch.allclose(of_query[:, :, :1], of_query)


# rbf


def test_reduction_keeps_16_bits_of_the_norm_in_bf16() -> None:
    torch.manual_seed(0)
    key = (10 * torch.randn(1, 1, 50, 32)).bfloat16()
    query = torch.zeros_like(key)
    q, k = RBF(Settings(4, 1, 4)).dot_product(query, key)
    score = q.float() @ k.float().transpose(-2, -1)
    norm = key.float().square().sum(-1).unsqueeze(-2).expand_as(score)
    torch.testing.assert_close(-score, norm, rtol=2**-16, atol=0)


# student_t


def test_a_small_distance_between_long_vectors_is_near_enough() -> None:
    query = torch.full((1, 1, 1, 4), 100.0)
    assert KERNELS["student-t"](Settings(4, 1, 4)).weight(query, query + 0.01).item() == pytest.approx(1, abs=0.01)


# taylor


@pytest.mark.parametrize("tokens", [7, 140])
def test_every_path_of_taylor_gives_what_a_loop_over_pairs_gives(tokens: int) -> None:
    module, x = attention(kernel="taylor", tokens=tokens)

    def weigh(q, k, i, j, head):
        s = q @ k / math.sqrt(len(q))
        return sum(s**n / math.factorial(n) for n in range(3))

    check(module, x, weigh)


def test_the_feature_map_has_one_feature_for_each_product() -> None:
    kernel, q = Taylor(Settings(8, 1, 8)), torch.randn(1, 1, 3, 8, dtype=torch.float64)
    k = torch.randn(1, 1, 5, 8, dtype=torch.float64)
    of_query, of_key = kernel.feature_map(q, Side.QUERY), kernel.feature_map(k, Side.KEY)
    assert of_query.size(-1) == 1 + 8 + 36
    torch.testing.assert_close(of_query @ of_key.transpose(-2, -1), kernel.weight(q, k))


# tempered

TEMPERED = [known.word for known in KERNELS.definitions() if "temperature" in known.option_names]


@pytest.mark.parametrize("word", TEMPERED)
def test_the_logarithm_of_the_weight_is_divided_by_it(word: str) -> None:
    query, key = torch.randn(2, 1, 1, 3, 4, dtype=torch.float64)
    plain, cool = (KERNELS[word](Settings(4, 1, 4), temperature=given) for given in (1, 0.5))
    torch.testing.assert_close(cool.log_weight(query, key), 2 * plain.log_weight(query, key))


@pytest.mark.parametrize("word", TEMPERED)
def test_a_learned_temperature_is_one_of_each_head(word: str) -> None:
    module, x = by_hand.attention(kernel=word, temperature="learned")
    temperature = module.kernel.log_temperature.detach().exp().flatten().tolist()
    assert len(set(temperature)) == by_hand.HEADS
    fixed = [KERNELS[word](Settings(8, 1, 4), temperature=given) for given in temperature]

    def score(q: np.ndarray, k: np.ndarray, i: int, j: int, head: int) -> float:
        pair = (torch.from_numpy(vector)[None, None, None] for vector in (q, k))
        return float(fixed[head].log_weight(*pair))

    by_hand.same(module, x[0], by_hand.smoothed(module, x[0], score=score, sees=lambda i, j: j <= i))
    assert KERNELS[word](Settings(8, 2, 4), temperature="learned").log_temperature.tolist() == [[[0.0]], [[0.0]]]


@pytest.mark.parametrize("temperature", [0, -1.0, float("inf"), "hot", True])
def test_what_is_no_temperature_is_refused(temperature: object) -> None:
    with pytest.raises(ValueError, match=r"temperature: .*; allowed: a number above 0"):
        KERNELS["rbf"](Settings(4, 1, 4), temperature=temperature)


# polynomial


@pytest.mark.parametrize("degree", [2, 4, 6])
def test_polynomial_is_the_power_of_the_product_token_by_token(degree: int) -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, kernel="polynomial", degree=degree).double()
    x = by_hand.draw(9, 8)
    expected = by_hand.smoothed(
        module, x, score=lambda q, k, *_: float(q @ k) ** degree, row=lambda powers, *_: powers / powers.sum()
    )
    by_hand.same(module, x, expected)

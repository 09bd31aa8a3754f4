"""Each position scheme is its formula.

For `direct-sum`, `lookup`, `relative` and `product` that is checked with golden vectors, in `test_golden`.
"""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from kdx.attention import Cache, KernelAttention
from kdx.attention.encodings import ENCODINGS
from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions import POSITIONS
from kdx.attention.positions.alibi import ALiBi
from kdx.attention.positions.blockwise import Blockwise
from kdx.attention.positions.by_distance import ByDistance
from kdx.attention.positions.fire import FIRE
from kdx.attention.positions.forgetting import Forgetting
from kdx.attention.positions.kerple import KERPLELog, KERPLEPower
from kdx.attention.positions.product import Product
from kdx.attention.positions.relative import Relative
from kdx.attention.positions.rotary import Rotary
from kdx.attention.positions.t5 import T5
from kdx.vocabulary import Symmetry
from tests.attention import by_hand
from tests.attention.by_hand import HEAD_WIDTH, HEADS, WIDTH, attention, check, exponential, heads
from tests.attention.largest_tensor import LargestTensor

# alibi


@pytest.mark.parametrize("heads", [3, 6, 12])
def test_the_rates_are_as_exact_as_the_module(heads: int) -> None:
    rates = [2.0 ** (-8.0 / heads * head) for head in range(1, heads + 1)]
    scheme = ALiBi(Settings(8, heads, 2))
    assert torch.equal(scheme.slopes, torch.tensor(rates, dtype=torch.float32))
    assert scheme.double().slopes.tolist() == pytest.approx(rates, rel=1e-15)
    assert torch.equal(scheme.float().slopes, torch.tensor(rates, dtype=torch.float32))


@pytest.mark.parametrize("filter", ["causal", "full"])
def test_every_path_of_alibi_gives_what_a_loop_over_pairs_gives(filter: str) -> None:
    module, x = attention(positions=["alibi"], filter=filter)
    check(
        module,
        x,
        lambda q, k, i, j, head: exponential(q, k) * math.exp(-(2.0 ** (-8 * (head + 1) / HEADS)) * abs(i - j)),
        later=filter == "full",
    )


@pytest.mark.parametrize(("filter", "reads"), [("causal", "the past"), ("full", "both sides")])
def test_only_the_past_of_a_long_row_takes_a_column(filter: str, reads: str) -> None:
    scheme, place = ALiBi(Settings(8, 2, 4)), TokenPositions(torch.arange(257), None, 0)
    query = torch.zeros(1, 2, 257, 4)
    assert (scheme.dot_product(query, place, place, past=filter == "causal") is None) == (reads == "both sides")
    short = TokenPositions(torch.arange(256), None, 0)
    assert scheme.dot_product(query[:, :, :256], short, short, past=True) is None


# several schemes


@pytest.mark.parametrize("word", ["alibi", "forgetting"])
def test_a_long_row_makes_no_tensor_of_pairs(word: str) -> None:
    """That both paths give the same numbers and gradients there, `kdx verify` checks."""
    x = torch.randn(1, 600, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    module = attention(positions=[word])[0]
    for module.path in ("fused", "literal"):
        with LargestTensor() as largest:
            module.smooth(x).square().sum().backward()
        assert (largest.numbers < 600 * 600) == (module.path == "fused")


@pytest.mark.parametrize(
    "options",
    [
        {"positions": ["cope"], "counted": 4},
        {"positions": ["forgetting"]},
        {"positions": ["grape-additive"]},
        {"positions": ["path"]},
    ],
    ids=str,
)
def test_what_counts_tokens_passes_over_padding_between_them(options: dict) -> None:
    module, x = attention(tokens=5, **options)
    junk = 9 * torch.ones(2, 2, WIDTH, dtype=torch.float64)
    padding = torch.tensor([[False, False, True, True, False, False, False]] * 2)
    for module.path in ("fused", "literal"):
        positions = torch.tensor([0, 1, 1, 1, 2, 3, 4])
        amid = module(torch.cat([x[:, :2], junk, x[:, 2:]], 1), query_positions=positions, key_padding=padding)
        torch.testing.assert_close(amid[:, 4:], module(x)[:, 2:])


# blockwise


class Counted(Blockwise):
    def blockwise(self, query, at_query, at_key):
        seen = at_key.positions.float()
        return lambda query, asked, others: at_query.positions.float()[asked, None] - seen[others]


def test_the_whole_is_the_part_of_all_queries_and_all_keys():
    scheme = Counted(Settings(4, 1, 4))
    at_query, at_key = (TokenPositions(torch.arange(count), None) for count in (3, 5))
    whole = scheme.log_weight(torch.zeros(1, 1, 3, 4), at_query, at_key)
    assert whole.tolist() == [[float(i - j) for j in range(5)] for i in range(3)]


# by_distance


class Itself(ByDistance):
    """The distance from query to key, for two heads."""

    def bias(self, distance: Tensor) -> Tensor:
        return torch.stack([distance, 10 * distance])


def test_known_positions_and_looked_up_ones_give_the_same_bias() -> None:
    scheme, positions = Itself(Settings(8, 2, 4)), (torch.arange(3, 6), torch.arange(1, 8))
    known = scheme.log_weight(torch.zeros(1, 2, 3, 4), *(TokenPositions(p, None, int(p[0])) for p in positions))
    looked_up = scheme.log_weight(torch.zeros(1, 2, 3, 4), *(TokenPositions(p, None) for p in positions))
    assert known[0].tolist() == [[-2, -1, 0, 1, 2, 3, 4], [-3, -2, -1, 0, 1, 2, 3], [-4, -3, -2, -1, 0, 1, 2]]
    assert torch.equal(known, looked_up)


def test_positions_by_row_give_a_bias_by_row() -> None:
    rows = TokenPositions(torch.tensor([[0, 1], [5, 9]]), None)
    bias = Itself(Settings(8, 2, 4)).log_weight(torch.zeros(2, 2, 2, 4), rows, rows)
    assert bias.shape == (2, 2, 2, 2)
    assert bias[1, 1].tolist() == [[0, 40], [-40, 0]]


# cope


def position(module: KernelAttention, x: torch.Tensor, i: int, j: int, head: int) -> float:
    """How many of the tokens from j to i the query finds alike."""
    query, key = (heads(linear, x, HEAD_WIDTH)[head] for linear in (module.query, module.key))
    return sum(1 / (1 + math.exp(-(query[i] @ key[each]) / math.sqrt(HEAD_WIDTH))) for each in range(j, i + 1))


def test_every_path_of_cope_gives_what_a_loop_over_pairs_gives() -> None:
    module, x = attention(positions=["cope"], counted=4, tokens=12)
    table, clipped = module.positions["cope"].weight.detach().numpy(), []
    for row in x.split(1):

        def weigh(q, k, i, j, head, row=row):
            p = min(position(module, row[0], i, j, head), 3.0)
            clipped.append(p == 3.0)
            below = math.floor(p)
            vector = table[below] * (1 - (p - below)) + table[math.ceil(p)] * (p - below)
            return exponential(q, k) * math.exp(q @ vector / math.sqrt(len(q)))

        check(module, row, weigh)
    assert any(clipped) and not all(clipped)


# fire


def bias_of_fire(scheme: FIRE, i: int, j: int, head: int) -> float:
    """f_θ(ψ(|i - j|) / ψ(max(i, j, L))) of one pair and head."""
    state = {name: value.numpy() for name, value in scheme.state_dict().items()}
    c, longest = np.exp(state["log_scale"]), np.exp(state["log_threshold"])
    proportion = np.log(1 + c * abs(i - j)) / np.log(1 + c * max(i, j, longest))
    units = [max(w[0] * proportion + b, 0.0) for w, b in zip(state["hidden.weight"], state["hidden.bias"], strict=True)]
    return float(state["output.weight"][head] @ np.array(units) + state["output.bias"][head])


@pytest.mark.parametrize("filter", ["causal", "full"])
def test_every_path_of_fire_gives_what_a_loop_over_pairs_gives(filter: str) -> None:
    module, x = attention(positions=["fire"], filter=filter, threshold=3.0)
    scheme = module.positions["fire"]
    check(
        module,
        x,
        lambda q, k, i, j, head: exponential(q, k) * np.exp(bias_of_fire(scheme, i, j, head)),
        later=filter == "full",
    )


def test_c_and_l_begin_as_in_the_paper() -> None:
    scheme = FIRE(Settings(8, 2, 4))
    assert scheme.log_scale.exp().item() == pytest.approx(0.1)
    assert scheme.log_threshold.exp().item() == pytest.approx(512)


# forgetting


def gates(module: KernelAttention, x: np.ndarray) -> np.ndarray:
    """f of each token and head, (T, H)."""
    weight, bias = (part.detach().numpy() for part in module.positions["forgetting"].gate.parameters())
    return 1 / (1 + np.exp(-(x @ weight.T + bias)))


def test_every_path_of_forgetting_gives_what_a_loop_over_pairs_gives() -> None:
    module, x = attention(positions=["forgetting"])
    for row in x.split(1):
        f = gates(module, row[0].numpy())
        check(module, row, lambda q, k, i, j, head, f=f: exponential(q, k) * math.prod(f[j + 1 : i + 1, head]))


def test_a_beam_takes_its_gates_along() -> None:
    module, x = attention(positions=["forgetting"])
    cache, order = Cache(), torch.tensor([1, 0])
    module(x[:, :4], cache=cache)
    cache.select(order)
    torch.testing.assert_close(module(x[order, 4:], cache=cache), module(x[order])[:, 4:])


def test_gates_keep_their_gradient_in_half_precision() -> None:
    x = torch.randn(2, 600, WIDTH, generator=torch.Generator().manual_seed(0))
    module, result = attention(positions=["forgetting"])[0].float(), []
    gate = module.positions["forgetting"].gate
    torch.nn.init.constant_(gate.bias, 1.0)
    for half in (False, True):
        module.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            module(x).float().square().sum().backward()
        result.append(gate.weight.grad.clone())
    assert (result[0] - result[1]).norm() < 0.1 * result[0].norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gates_are_at_least_in_32_bits(dtype: torch.dtype) -> None:
    module, x = attention(positions=["forgetting"])
    scheme = module.positions["forgetting"].to(dtype)
    assert isinstance(scheme, Forgetting) and scheme.of_tokens(x.to(dtype)).dtype is torch.float32


# kerple


def test_log_is_a_power_of_one_plus_a_multiple_of_the_distance() -> None:
    scheme = KERPLELog(Settings(8, 2, 4))
    a, p = (0.01 + torch.nn.functional.softplus(raw) for raw in (scheme.scale, scheme.power))
    torch.testing.assert_close(scheme.bias(torch.tensor([0, -5]))[:, 1], -p * torch.log(1 + 5 * a))


def test_power_is_at_most_two() -> None:
    scheme = KERPLEPower(Settings(8, 2, 4))
    torch.nn.init.constant_(scheme.power, 50.0)
    a = 0.01 + torch.nn.functional.softplus(scheme.scale)
    torch.testing.assert_close(scheme.bias(torch.tensor([0, 3]))[:, 1], -9 * a)


@pytest.mark.parametrize("kind", [KERPLELog, KERPLEPower])
def test_both_begin_evenly_spread_over_the_ranges_of_the_authors(kind: type) -> None:
    torch.manual_seed(0)
    scheme = kind(Settings(4000, 4000, 1)).double()
    near, far = (-scheme.bias(torch.tensor(distance)) for distance in (1, 100))
    a, p = (0.01 + torch.nn.functional.softplus(raw) for raw in (scheme.scale, scheme.power))
    if kind is KERPLEPower:
        torch.testing.assert_close(near, a)
        p = (far / near).log() / math.log(100)
    for result, least, most in ((a, 0.01, 1.01), (p, 0.01, 2.01)):
        assert least <= result.min() and result.max() <= most
        quartiles = torch.quantile((result - least) / (most - least), torch.tensor([0.25, 0.5, 0.75]).double())
        torch.testing.assert_close(quartiles, torch.tensor([0.25, 0.5, 0.75]).double(), atol=0.03, rtol=0)


@pytest.mark.parametrize("kind", [KERPLELog, KERPLEPower])
def test_the_factor_is_a_positive_semi_definite_kernel_with_finite_gradients(kind: type) -> None:
    torch.manual_seed(0)
    scheme, positions = kind(Settings(8, 4, 2)).double(), torch.arange(12)
    bias = scheme.bias(positions.unsqueeze(-1) - positions)
    assert (torch.linalg.eigvalsh(bias.exp()) > -1e-12).all()
    assert (bias.diagonal(dim1=-2, dim2=-1) == 0).all()
    bias.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in scheme.parameters())


# product

T = ENCODINGS["sinusoidal"](8, 0)


def test_positions_by_row_give_a_factor_by_row() -> None:
    scheme = Product(Settings(8, heads=2, head_width=4))
    rows = TokenPositions(torch.tensor([[0, 1, 2], [5, 6, 7]]), T)
    both = scheme.log_weight(torch.zeros(2, 2, 3, 4), rows, rows)
    assert both.shape == (2, 2, 3, 3)
    second = TokenPositions(torch.tensor([5, 6, 7]), T)
    torch.testing.assert_close(both[1], scheme.log_weight(torch.zeros(1, 2, 3, 4), second, second))


def test_columns_are_taken_on_a_gpu_only() -> None:
    """The device `meta` stands for a GPU: it is no CPU."""
    scheme, place = Product(Settings(8, heads=2, head_width=4)), TokenPositions(torch.arange(257), T)
    query = torch.zeros(1, 2, 257, 4)
    assert scheme.dot_product(query, place, place, past=False) is None
    columns = scheme.dot_product(query.to("meta"), place, place, past=False)
    assert columns is not None
    q, k = columns
    torch.testing.assert_close(q @ k.transpose(-2, -1) / 2, scheme.log_weight(query, place, place))


# relative


def places(known: bool) -> tuple[TokenPositions, TokenPositions]:
    start = (5, 2) if known else (None, None)
    return TokenPositions(torch.arange(5, 8), None, start[0]), TokenPositions(torch.arange(2, 9), None, start[1])


def test_symmetric_has_neither_u_nor_v() -> None:
    module = KernelAttention(8, 2, positions=("relative",), symmetry=Symmetry.SYMMETRIC)
    assert [name for name, _ in module.positions.named_parameters()] == ["relative.projection.weight"]
    for bias in ("learned", "shared"):
        with pytest.raises(
            ValueError, match="xl_bias: u would make a symmetric kernel asymmetric; allowed with symmetric: none"
        ):
            KernelAttention(8, 2, positions=("relative",), symmetry=Symmetry.SYMMETRIC, xl_bias=bias)


@pytest.mark.parametrize("known", [True, False])
def test_dropout_drops_a_feature_for_all_pairs_at_a_distance(known: bool) -> None:
    torch.manual_seed(0)
    scheme, query = Relative(Settings(8, heads=2, head_width=4), position_dropout=0.5), torch.ones(1, 2, 3, 4)
    whole = scheme.eval().log_weight(query, *places(known))
    torch.testing.assert_close(scheme.log_weight(query, *places(known)), whole)  # none is dropped but in training
    dropped = scheme.train().log_weight(query, *places(known))
    assert not torch.allclose(whole, dropped)
    for diagonal in range(-2, 7):
        same = dropped.diagonal(diagonal, -2, -1)
        torch.testing.assert_close(same, same[..., :1].expand_as(same))
    assert dropped.isfinite().all()


# rotary


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match="head_width: a rotation turns pairs, not 3; allowed: an even number"):
        Rotary(Settings(9, 3, 3))


def frequency(p: int, width: int, options: dict) -> float:
    """The angle from one position to the next of pair p, as printed in each paper."""
    base, scaling = options.get("rotary_base", 10000.0), options.get("rotary_scaling", "none")
    factor, length = options.get("rotary_factor", 1.0), options.get("original_length", 512)
    if scaling == "ntk":
        base = base * factor ** (width / (width - 2))
    each = base ** (-2 * p / width)
    if scaling == "interpolation":
        return each / factor
    if scaling == "yarn":
        turns = length / (2 * math.pi / each)
        ramp = 0.0 if turns < 1 else 1.0 if turns > 32 else (turns - 1) / 31
        return (1 - ramp) * each / factor + ramp * each
    return each


OPTIONS = [
    {},
    {"rotary_base": 500000.0},
    {"rotary_share": 0.5},
    {"rotary_scaling": "interpolation", "rotary_factor": 4.0},
    {"rotary_scaling": "ntk", "rotary_factor": 4.0},
    {"rotary_scaling": "yarn", "rotary_factor": 4.0, "original_length": 100},
    {"rotary_scaling": "yarn", "rotary_factor": 8.0, "original_length": 3000, "rotary_share": 0.5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_path_of_rotary_gives_what_a_loop_over_pairs_gives(options: dict) -> None:
    module, x = attention(positions=["rotary"], **options)
    width = int(HEAD_WIDTH * options.get("rotary_share", 1.0))
    yarn = options.get("rotary_scaling") == "yarn"
    inverse_temperature = (0.1 * math.log(options["rotary_factor"]) + 1) ** 2 if yarn else 1.0

    def turned(features: np.ndarray, position: int) -> np.ndarray:
        pairs = features[:width:2] + 1j * features[1:width:2]
        angles = np.array([position * frequency(p, width, options) for p in range(width // 2)])
        pairs = pairs * np.exp(1j * angles)
        return np.concatenate([np.stack([pairs.real, pairs.imag], -1).ravel(), features[width:]])

    check(
        module,
        x,
        lambda q, k, i, j, head: math.exp(inverse_temperature * turned(q, i) @ turned(k, j) / math.sqrt(HEAD_WIDTH)),
    )


@pytest.mark.parametrize("share", [0.3, 0.25, 1.0 / 3])
def test_a_share_that_is_no_even_number_of_features_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"rotary_share: .* features is .*; allowed: an even number of them"):
        Rotary(Settings(8, 2, 4), rotary_share=share)


# sandwich


def bias_of_sandwich(i: int, j: int, head: int, cosines: int) -> float:
    """The product of two sinusoids, term by term, over 8h/H."""
    total = 0.0
    for p in range(cosines):
        a, b = i / 10000 ** (p / cosines), j / 10000 ** (p / cosines)
        total += math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b)
    return total * HEADS / (8 * (head + 1))


@pytest.mark.parametrize("filter", ["causal", "full"])
def test_every_path_of_sandwich_gives_what_a_loop_over_pairs_gives(filter: str) -> None:
    module, x = attention(positions=["sandwich"], filter=filter, frequencies=3)
    check(
        module,
        x,
        lambda q, k, i, j, head: exponential(q, k) * np.exp(bias_of_sandwich(i, j, head, 3)),
        later=filter == "full",
    )


# t5


def bucket_of(distance: int) -> int:
    scheme = T5(Settings(8, heads=1, head_width=8))
    with torch.no_grad():
        scheme.weight.copy_(torch.arange(64))
    return int(scheme.bias(torch.tensor([distance])).item())


def test_near_distances_have_a_bucket_each_and_far_ones_share() -> None:
    assert [bucket_of(-d) for d in range(17)] == list(range(17))
    assert bucket_of(-19) == 17
    assert bucket_of(-127) == bucket_of(-128) == bucket_of(-10000) == 31


# xpos


def compared(features: np.ndarray, position: int, sign: int) -> np.ndarray:
    """Each pair of features turned by its angle and multiplied by ζ^(± position / 512)."""
    width, turned = len(features), np.zeros_like(features)
    for p in range(0, width, 2):
        angle, fold = position / 10000 ** (p / width), ((p / width + 0.4) / 1.4) ** (sign * position / 512)
        turned[p] = fold * (features[p] * math.cos(angle) - features[p + 1] * math.sin(angle))
        turned[p + 1] = fold * (features[p + 1] * math.cos(angle) + features[p] * math.sin(angle))
    return turned


def test_every_path_of_xpos_gives_what_a_loop_over_pairs_gives() -> None:
    module, x = attention(positions=["xpos"], tokens=12)
    check(module, x, lambda q, k, i, j, head: math.exp(compared(q, i, 1) @ compared(k, j, -1) / math.sqrt(len(q))))


# grape-additive


def steps_of_grape(module: KernelAttention, x: np.ndarray) -> np.ndarray:
    """m_h log σ(⟨p_i, R_l p̂_l⟩ / P) of each head, query i and token l: (H, T, T)."""
    p = (x @ module.positions["grape-additive"].potential.weight.detach().numpy().T).reshape(len(x), HEADS, 8)
    unit = p / np.sqrt((p**2).mean(-1, keepdims=True) + 1e-6)
    steps = np.zeros((HEADS, len(x), len(x)))
    for head, i, place in np.ndindex(*steps.shape):
        c, s = math.cos(place), math.sin(place)
        pairs = [
            p[i, head, a] * (c * unit[place, head, a] - s * unit[place, head, a + 4])
            + p[i, head, a + 4] * (s * unit[place, head, a] + c * unit[place, head, a + 4])
            for a in range(4)
        ]
        steps[head, i, place] = -(2.0 ** (-8 * (head + 1) / HEADS)) * math.log1p(math.exp(-sum(pairs) / 8))
    return steps


def test_every_path_of_additive_grape_gives_what_a_loop_over_pairs_gives() -> None:
    module, x = attention(positions=["grape-additive"])
    for row in x.split(1):
        steps = steps_of_grape(module, row[0].numpy())
        check(
            module,
            row,
            lambda q, k, i, j, head, s=steps: exponential(q, k) * math.exp(s[head, i, j + 1 : i + 1].sum()),
        )


# grape-multiplicative


def test_multiplicative_grape_starts_as_rotary_and_turns_by_the_angles_that_it_learns() -> None:
    torch.manual_seed(0)
    module = KernelAttention(WIDTH, HEADS, positions=["grape-multiplicative"], filter="causal").double()
    scheme, row = module.positions["grape-multiplicative"], by_hand.draw(7, WIDTH)
    rotary = KernelAttention(WIDTH, HEADS, positions=["rotary"], filter="causal").double()
    rotary.load_state_dict(module.state_dict(), strict=False)
    torch.testing.assert_close(module(row[None]), rotary(row[None]), rtol=0, atol=1e-6)
    with torch.no_grad():
        scheme.sinusoid.log_frequency.copy_(torch.tensor([0.3, -1.2]))
    angles = np.exp(scheme.sinusoid.log_frequency.detach().numpy())

    def turned(f: np.ndarray, n: int) -> np.ndarray:
        generator = np.zeros((HEAD_WIDTH, HEAD_WIDTH))
        for plane, angle in enumerate(angles):
            generator[2 * plane + 1, 2 * plane], generator[2 * plane, 2 * plane + 1] = angle, -angle
        return torch.linalg.matrix_exp(n * torch.from_numpy(generator)).numpy() @ f

    check(module, row[None], lambda q, k, i, j, head: exponential(turned(q, i), turned(k, j)))


# path


def test_every_path_of_path_gives_what_a_product_of_matrices_gives() -> None:
    module, x = attention(positions=["path"])
    scheme = module.positions["path"]
    weights = {name: parameter.detach().numpy() for name, parameter in scheme.named_parameters()}
    for row in x.split(1):
        tokens = row[0].numpy()
        w = (tokens @ weights["narrow.weight"].T @ weights["direction.weight"].T).reshape(len(tokens), HEADS, -1)
        w /= np.linalg.norm(w, axis=-1, keepdims=True)
        beta = 2 / (1 + np.exp(-(tokens @ weights["strength.weight"].T + weights["strength.bias"])))

        def weigh(q: np.ndarray, k: np.ndarray, i: int, j: int, head: int, w=w, beta=beta) -> float:
            for token in range(j + 1, i + 1):
                k = k - beta[token, head] * w[token, head] * (w[token, head] @ k)
            return exponential(q, k)

        check(module, row, weigh)


# pope


@pytest.mark.parametrize("filter", ["causal", "full"])
def test_every_path_of_pope_gives_what_a_loop_over_pairs_gives(filter: str) -> None:
    module, x = attention(positions=["pope"], filter=filter)
    shift = module.positions["pope"].shift.detach().numpy()[:, 0]

    def weigh(q: np.ndarray, k: np.ndarray, i: int, j: int, head: int) -> float:
        lengths, angles = np.log1p(np.exp(q)) * np.log1p(np.exp(k)), 10000.0 ** -(np.arange(HEAD_WIDTH) / HEAD_WIDTH)
        return math.exp((lengths * np.cos((j - i) * angles + shift[head])).sum() / math.sqrt(HEAD_WIDTH))

    check(module, x, weigh, later=filter == "full")


def test_every_other_scheme_acts_before_pope_widens_what_is_compared() -> None:
    """Columns of a factor, such as alibi's, are over the root of a head's width."""
    others = [word for word in POSITIONS if word != "pope"]
    x = torch.randn(1, 300, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for word in others:
        module, _ = attention(positions=[word, "pope"])
        outputs = []
        for module.path in ("fused", "literal"):
            outputs.append(module(x))
        torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-9, msg=word)

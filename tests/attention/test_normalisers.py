"""Each normaliser is its formula."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import KernelAttention, smoother
from kdx.attention.interfaces import Settings
from kdx.attention.kernels import KERNELS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.normalisers.entmax import Entmax
from kdx.attention.normalisers.learned_sink import LearnedSink
from kdx.attention.normalisers.length import Length
from kdx.attention.normalisers.row_sum import RowSum
from kdx.attention.normalisers.softmax_plus_one import SoftmaxPlusOne
from kdx.models.transformer import initialise
from kdx.vocabulary import Initialisation
from tests.attention import by_hand

# entmax

SETTINGS = Settings(4, 1, 4)


def entmax(scores: np.ndarray, alpha: float) -> np.ndarray:
    """Return weights by Newton's method on the equation that τ solves, from below, where it rises to the root."""
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
def test_entmax_is_the_definition_token_by_token(alpha: float, filter: str) -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser="entmax", alpha=alpha, filter=filter).double()
    x = 2 * by_hand.draw(9, 8)
    expected = by_hand.smoothed(
        module, x, row=lambda scores, *_: entmax(scores, alpha), sees=lambda i, j: filter == "full" or j <= i
    )
    by_hand.same(module, x, expected)


@settings(deadline=None)
@given(
    scores=st.lists(st.floats(-50, 50), min_size=1, max_size=12),
    alpha=st.sampled_from([1.01, 1.25, 1.5, 1.75, 2.0, 3.0, 10.0]),
    shift=st.floats(-1e3, 1e3),
)
def test_weights_are_shares_that_no_shift_of_the_row_changes(scores: list[float], alpha: float, shift: float) -> None:
    row = torch.tensor(scores, dtype=torch.float64)
    result = weights(row, alpha)
    assert (result >= 0).all()
    assert result.sum().item() == pytest.approx(1, abs=1e-9)
    # What weighs more is no less.
    assert (result[row.argsort()].diff() >= 0).all()
    torch.testing.assert_close(weights(row + shift, alpha), result, rtol=0, atol=1e-6 if alpha > 2 else 1e-9)


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
    result = weights(scores, 1.5, torch.zeros(1, 3, dtype=torch.bool))
    result.sum().backward()
    assert not result.any() and not scores.grad.any()


# learned_sink

SINKS = [-1.5, 2.0]


def attention(**choices: object) -> KernelAttention:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser="learned-sink", **choices).double()
    with torch.no_grad():
        module.normaliser.log_weight.copy_(torch.tensor(SINKS))
    return module


def with_sink(scores: np.ndarray, head: int, query: int) -> np.ndarray:
    return np.exp(scores) / (np.exp(SINKS[head]) + np.exp(scores).sum())


@pytest.mark.parametrize("filter", ["full", "causal"])
@pytest.mark.parametrize("positions", [(), ("alibi",)])
@pytest.mark.parametrize("tokens", [9, 300], ids=["one block", "several"])
def test_learned_sink_is_the_definition_token_by_token(filter: str, positions: tuple[str, ...], tokens: int) -> None:
    module, x = attention(filter=filter, positions=positions), by_hand.draw(tokens, 8)
    slopes = [2**-4, 2**-8] if positions else [0, 0]
    expected = by_hand.smoothed(
        module,
        x,
        score=lambda q, k, i, j, head: by_hand.scaled(q, k, i, j, head) - slopes[head] * abs(i - j),
        row=with_sink,
        sees=lambda i, j: filter == "full" or j <= i,
    )
    by_hand.same(module, x, expected)


def test_it_starts_at_one() -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser="learned-sink")
    torch.manual_seed(0)
    fixed = KernelAttention(8, 2, normaliser="softmax-plus-one")
    x = by_hand.draw(1, 5, 8).float()
    torch.testing.assert_close(module(x), fixed(x))


def test_a_sink_far_above_its_row_has_a_gradient_that_is_a_number() -> None:
    sink = LearnedSink(Settings(4, 1, 4))
    smoother.weights(torch.full((1, 1, 1, 2), -1000.0), None, sink).sum().backward()
    assert sink.log_weight.grad.tolist() == [0.0]


def test_half_precision_keeps_what_a_large_sink_is() -> None:
    """100.3 in 8 bits is 100.5, which would leave 0.38 of the value."""
    sink, log_weight = LearnedSink(Settings(4, 1, 4)), torch.full((1, 1, 1, 1), 100.0, dtype=torch.bfloat16)
    torch.nn.init.constant_(sink.log_weight, 100.3)
    output = smoother.quick(log_weight, None, sink, torch.ones(1, 1, 1, 4, dtype=torch.bfloat16))
    torch.testing.assert_close(output.float(), torch.full((1, 1, 1, 4), 0.4256), rtol=0.01, atol=0)


# length


def test_total_is_the_number_of_keys_seen() -> None:
    weight, visible = torch.zeros(2, 3), torch.tensor([[True, False, True], [False, False, False]])
    assert Length(SETTINGS).total(weight, visible).tolist() == [[2.0], [1.0]]
    assert Length(SETTINGS).total(weight, torch.tensor([[True], [True]])).tolist() == [[3.0], [3.0]]
    assert Length(SETTINGS).total(weight, None).tolist() == [[3.0]]


# row_sum


def test_total_is_the_raw_sum_and_nothing_where_it_is_zero() -> None:
    weight = torch.tensor([[1.0, -3.0], [0.0, 0.0]])
    assert RowSum(SETTINGS).total(weight, None).tolist() == [[-2.0], [1.0]]


# sigmoid


@pytest.mark.parametrize("bias", ["length", "none"])
@pytest.mark.parametrize("filter", ["full", "causal"])
def test_sigmoid_is_the_definition_token_by_token(bias: str, filter: str) -> None:
    """The factor of the position is inside."""
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


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "student-t", "elu", "relu-squared"])
def test_a_kernel_without_logarithm_is_refused(kernel: str) -> None:
    with pytest.raises(ValueError, match=f"normaliser: sigmoid has no meaning for kernel {kernel}; allowed: row-sum"):
        KernelAttention(8, 2, kernel=kernel, normaliser="sigmoid")


# softmax_plus_one


def plus_one(scores: np.ndarray, head: int, query: int) -> np.ndarray:
    return np.exp(scores) / (1 + np.exp(scores).sum())


@pytest.mark.parametrize("filter", ["full", "causal"])
@pytest.mark.parametrize("tokens", [9, 300], ids=["one call", "several"])
def test_softmax_plus_one_is_the_definition_token_by_token(filter: str, tokens: int) -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser="softmax-plus-one", filter=filter).double()
    x = by_hand.draw(tokens, 8)
    by_hand.same(module, x, by_hand.smoothed(module, x, row=plus_one, sees=lambda i, j: filter == "full" or j <= i))


def test_log_weights_of_any_size_keep_the_one() -> None:
    log_weight = torch.tensor([[[[1000.0, 999.0], [-1000.0, -1001.0]]]], requires_grad=True)
    result = smoother.weights(log_weight, None, SoftmaxPlusOne(Settings(4, 1, 4)))
    torch.testing.assert_close(result, torch.tensor([[[[0.7310586, 0.2689414], [0.0, 0.0]]]]))
    result[..., 0].sum().backward()
    torch.testing.assert_close(log_weight.grad, torch.tensor([[[[0.1966119, -0.1966119], [0.0, 0.0]]]]))


def test_it_has_no_meaning_for_weights_with_a_sign() -> None:
    message = "normaliser: softmax-plus-one has no meaning for kernel linear; allowed: row-sum, length"
    with pytest.raises(ValueError, match=message):
        KernelAttention(8, 2, kernel="linear", normaliser="softmax-plus-one")
    assert KERNELS.definition("linear").gives == "signed weight"


# softpick, scalable-softmax, stick-breaking


def softpick(scores: np.ndarray, head: int, query: int) -> np.ndarray:
    return np.maximum(np.exp(scores) - 1, 0) / np.abs(np.exp(scores) - 1).sum()


def scalable_softmax(scores: np.ndarray, head: int, query: int) -> np.ndarray:
    powers = float(len(scores)) ** (SCALES[head] * scores)
    return powers / powers.sum()


def stick_breaking(scores: np.ndarray, head: int, query: int) -> np.ndarray:
    """From the latest key on, a share of what is left of the stick."""
    weights, left = np.zeros_like(scores), 1.0
    for key in range(len(scores) - 1, -1, -1):
        share = 1 / (1 + np.exp(-scores[key]))
        weights[key] = share * left
        left -= weights[key]
    return weights


SCALES = [0.5, 1.75]
ROWS = {"softpick": softpick, "scalable-softmax": scalable_softmax, "stick-breaking": stick_breaking}


@pytest.mark.parametrize("normaliser", ROWS)
@pytest.mark.parametrize("filter", ["full", "causal"])
@pytest.mark.parametrize("tokens", [9, 300], ids=["one block", "several"])
def test_weights_of_a_row_are_the_definition_token_by_token(normaliser: str, filter: str, tokens: int) -> None:
    if (normaliser, filter) == ("stick-breaking", "full"):
        return
    torch.manual_seed(0)
    module = KernelAttention(8, 2, normaliser=normaliser, filter=filter, positions=["alibi"]).double()
    if normaliser == "scalable-softmax":
        with torch.no_grad():
            module.normaliser.scale.copy_(torch.tensor(SCALES))
    x, slopes = by_hand.draw(tokens, 8), [2**-4, 2**-8]
    expected = by_hand.smoothed(
        module,
        x,
        score=lambda q, k, i, j, head: by_hand.scaled(q, k, i, j, head) - slopes[head] * abs(i - j),
        row=ROWS[normaliser],
        sees=lambda i, j: filter == "full" or j <= i,
    )
    by_hand.same(module, x, expected)


@pytest.mark.parametrize("normaliser", ROWS)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_scores_of_any_size_have_finite_weights_and_gradients(normaliser: str, size: float) -> None:
    function = NORMALISERS[normaliser](SETTINGS)
    scores = (size * by_hand.draw(1, 1, 5, 6)).requires_grad_()
    visible = torch.ones(5, 6, dtype=torch.bool).tril(1)
    visible[2] = False
    result = function.weights(scores, None, visible)
    result.square().sum().backward()
    assert result.isfinite().all() and scores.grad is not None and scores.grad.isfinite().all()
    assert (result >= 0).all() and (result.sum(-1) <= 1 + 1e-12).all()
    assert not result[..., 2, :].any() and not result.masked_select(~visible).any()


@pytest.mark.parametrize("normaliser", ROWS)
def test_gradients_are_those_of_the_formula(normaliser: str) -> None:
    function = NORMALISERS[normaliser](SETTINGS).double()
    scores = by_hand.draw(1, 1, 4, 5).requires_grad_()
    visible = torch.ones(4, 5, dtype=torch.bool).tril(1)
    assert torch.autograd.gradcheck(lambda scores: function.weights(scores, None, visible), (scores,))


def test_the_scale_keeps_its_value_where_matrices_are_drawn_anew() -> None:
    function = NORMALISERS["scalable-softmax"](SETTINGS)
    initialise(function, Initialisation.NORMAL)
    assert function.scale.tolist() == [pytest.approx(0.43)]


def test_softpick_of_nothing_but_zeros_looks_at_nothing() -> None:
    scores = torch.zeros(1, 1, 1, 3, requires_grad=True)
    result = NORMALISERS["softpick"](SETTINGS).weights(scores, None, None)
    result.sum().backward()
    assert not result.any() and scores.grad is not None and scores.grad.isfinite().all()


def test_a_longer_row_of_scalable_softmax_is_as_sharp() -> None:
    """A softmax gives the largest of n keys less and less; this gives it at least what two keys leave it."""
    shares = []
    for keys in (10, 1000, 100_000):
        scores = torch.zeros(1, 1, 1, keys, dtype=torch.float64)
        scores[..., -1] = 5.0
        function = NORMALISERS["scalable-softmax"](SETTINGS).double()
        shares.append(float(function.weights(scores, None, None)[..., -1].detach()))
    assert shares == sorted(shares) and shares[0] > 0.9

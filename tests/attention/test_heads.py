"""Heads of queries may share keys and values, and what they give may be gated."""

import numpy as np
import pytest
import torch
from torch import Tensor

from kdx.attention import Cache, KernelAttention
from kdx.attention.kernels import KERNELS
from kdx.attention.positions import POSITIONS
from kdx.attention.spaces.graph import GraphAttention
from kdx.attention.spaces.multimodal import MultimodalAttention
from tests.attention import by_hand


def attention(**choices: object) -> KernelAttention:
    torch.manual_seed(0)
    return KernelAttention(16, 4, **choices).double()


def with_heads_of_their_own(module: KernelAttention, **choices: object) -> KernelAttention:
    """The same function, with each shared head of keys and values written out for every head that shares it."""
    whole, state = attention(**choices), module.state_dict()
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        shared = state[name].unflatten(0, (module.kv_heads, -1))
        state[name] = shared.repeat_interleave(4 // module.kv_heads, 0).flatten(0, 1)
    whole.load_state_dict(state)
    return whole


@pytest.mark.parametrize("shared", [1, 2])
def test_it_is_the_definition_token_by_token(shared: int) -> None:
    module, x = attention(kv_heads=shared, filter="causal"), by_hand.draw(7, 16)
    by_hand.same(module, x, by_hand.smoothed(module, x, sees=lambda i, j: j <= i))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tokens", [6, 140])
def test_sharing_is_having_the_same_keys_and_values(kernel: str, tokens: int) -> None:
    choices = {"kernel": kernel, "positions": tuple(POSITIONS), "value": "table", "filter": "causal"}
    if tokens > 6:
        choices |= {"positions": (), "value": "without-position"}
    module, x = attention(kv_heads=2, **choices), by_hand.draw(2, tokens, 16)
    whole = with_heads_of_their_own(module, **choices)
    for module.path in ("literal", "fused"):
        expected = whole(x)
        torch.testing.assert_close(module(x), expected, rtol=0, atol=1e-9 * float(expected.detach().abs().max()))


def test_a_cache_keeps_no_more_heads_than_there_are() -> None:
    module, x, cache = attention(kv_heads=1, positions=["rotary"], filter="causal"), by_hand.draw(3, 6, 16), Cache()
    steps = [module(token, cache=cache) for token in x[:, :4].split(1, 1)]
    assert cache.keys.key.shape == cache.keys.value.shape == (3, 1, 4, 4)
    cache.select(torch.tensor([2, 0]))
    steps = [torch.cat(steps, 1)[[2, 0]], *(module(token, cache=cache) for token in x[[2, 0], 4:].split(1, 1))]
    torch.testing.assert_close(torch.cat(steps, 1), module(x)[[2, 0]], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"kv_heads": 3}, "kv_heads: 3 do not divide 4 heads; allowed: a divisor"),
        ({"kv_heads": 0}, "kv_heads: 0 do not divide 4 heads; allowed: a divisor"),
        ({"kv_heads": 8}, "kv_heads: 8 do not divide 4 heads; allowed: a divisor"),
        (
            {"kv_heads": 2, "symmetry": "symmetric"},
            "kv_heads: 2, but queries and keys share one projection; allowed: 4",
        ),
        ({"projection": "none", "head_width": 3}, "head_width: 3, but heads share 16 features; allowed: 4"),
        ({"output_gate": "tanh"}, "output_gate: 'tanh'; allowed: none, sigmoid"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(choices: dict, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        attention(**choices)
    assert str(refusal.value) == message


def gated(module: KernelAttention, x: Tensor, smoothed: np.ndarray) -> np.ndarray:
    """W_o (σ(x W_g) ⊙ heads), from the heads' output (H, T, D)."""
    weights = {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}
    gate = 1 / (1 + np.exp(-(x.numpy() @ weights["gate.weight"].T + weights["gate.bias"])))
    joined = np.concatenate(list(smoothed), -1)
    return (gate * joined) @ weights["output.weight"].T + weights["output.bias"]


@pytest.mark.parametrize("shared", [4, 1])
def test_a_gate_reads_the_querys_token(shared: int) -> None:
    module, x = attention(output_gate="sigmoid", kv_heads=shared, filter="causal"), by_hand.draw(7, 16)
    expected = gated(module, x, by_hand.smoothed(module, x, sees=lambda i, j: j <= i))
    for module.path in ("literal", "fused"):
        np.testing.assert_allclose(module(x[None])[0].detach().numpy(), expected, rtol=0, atol=1e-10)
    cache = Cache()
    steps = [module(token, cache=cache) for token in x[None].split(1, 1)]
    np.testing.assert_allclose(torch.cat(steps, 1)[0].detach().numpy(), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "choices", [{}, {"symmetry": "symmetric"}, {"kv_heads": 2, "qk_norm": "rms"}, {"positions": ["rotary"]}], ids=str
)
def test_values_may_be_projected_as_keys_are(choices: dict) -> None:
    """Before keys are normalised or turned."""
    module, x = attention(value_projection="keys", filter="causal", **choices), by_hand.draw(7, 16)
    separate = attention(filter="causal", **choices)
    keys = {name.replace("key", "value"): given for name, given in module.state_dict().items() if "key." in name}
    queries = {name.replace("query", "value"): given for name, given in module.state_dict().items() if "query." in name}
    separate.load_state_dict(queries | keys | module.state_dict())
    assert module.value is None
    for module.path in ("literal", "fused"):
        torch.testing.assert_close(module(x[None]), separate(x[None]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("values", ["own", "keys"])
def test_without_projections_each_head_compares_its_share_of_the_features(values: str) -> None:
    """With an rbf kernel of learned temperature, it is Gaussian kernel attention (Kundu et al. 2026)."""
    module = attention(projection="none", value_projection=values, kernel="rbf", temperature="learned")
    projected = attention(symmetry="symmetric", value_projection=values, kernel="rbf", temperature="learned")
    x = by_hand.draw(7, 16)
    identity = {"query.weight": torch.eye(16), "query.bias": torch.zeros(16)}
    projected.load_state_dict(identity | module.state_dict())
    for module.path in ("literal", "fused"):
        torch.testing.assert_close(module(x[None]), projected(x[None]), rtol=0, atol=1e-10)
    left = {name.split(".")[0] for name, _ in module.named_parameters()}
    assert left == {"kernel", "output"} | ({"value"} if values == "own" else set())


def test_the_other_spaces_have_both() -> None:
    torch.manual_seed(0)
    both = {"kv_heads": 1, "output_gate": "sigmoid", "qk_norm": "rms", "value_projection": "keys"}
    graph, nodes = GraphAttention(16, 4, 3, **both).double(), by_hand.draw(2, 5, 16)
    labels = torch.randint(-1, 3, (2, 5, 5), generator=torch.Generator().manual_seed(0))
    outputs = []
    for graph.path in ("literal", "fused"):
        outputs.append(graph(nodes, labels))
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-10)
    assert graph.attention.key.weight.shape == (4, 16)
    # Of a complete graph with one label, what it adds to a row cancels.
    one = GraphAttention(16, 4, 1, relations=(), **both).double()
    whole = attention(**both)
    whole.load_state_dict(one.attention.state_dict())
    torch.testing.assert_close(one(nodes, torch.zeros(5, 5, dtype=torch.long)), whole(nodes), rtol=0, atol=1e-10)
    joint = MultimodalAttention([8, 8], 2, **both).double()
    for joint.path in ("literal", "fused"):
        outputs.append(joint(nodes))
    torch.testing.assert_close(outputs[2], outputs[3], rtol=0, atol=1e-10)

import math

import numpy as np
import pytest
import torch

from kdx.attention import Cache, KernelAttention
from kdx.attention import module as module_file
from kdx.attention.differential import EPSILON
from kdx.attention.kernels import KERNELS
from kdx.attention.positions import POSITIONS
from kdx.attention.spaces.graph import GraphAttention
from kdx.attention.values import VALUES
from tests.attention import by_hand


def attention(**choices: object) -> KernelAttention:
    torch.manual_seed(0)
    module = KernelAttention(16, 2, maps="differential", **choices).double()
    with torch.no_grad():
        # So large that λ is far from where it starts, and a gain is not 1.
        for parameter in module.differential.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return module


def expected(module: KernelAttention, x: torch.Tensor, initial: float) -> np.ndarray:
    """Return the output (T, M) under a causal filter, token by token."""
    state = {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}
    a_1, b_1, a_2, b_2 = (state[f"differential.lambdas.{index}"] for index in range(4))
    factor = math.exp(a_1 @ b_1) - math.exp(a_2 @ b_2) + initial
    query, key, value = (x.numpy() @ state[f"{name}.weight"].T for name in ("query", "key", "value"))
    heads = []
    for head in range(2):
        output = np.zeros((len(x), 8))
        for i in range(len(x)):
            for half, sign in ((0, 1.0), (1, -factor)):
                at = slice(8 * head + 4 * half, 8 * head + 4 * half + 4)
                scores = np.array([query[i, at] @ key[j, at] / 2 for j in range(i + 1)])
                for weight, j in zip(by_hand.softmax(scores), range(i + 1), strict=True):
                    output[i] += sign * weight * value[j, 8 * head : 8 * head + 8]
        root = np.sqrt((output**2).mean(-1, keepdims=True) + EPSILON)
        heads.append(output / root * state["differential.norm.weight"] * (1 - initial))
    return np.concatenate(heads, -1) @ state["output.weight"].T


@pytest.mark.parametrize("depth", [None, 1, 5])
def test_it_is_the_definition_token_by_token(depth: int | None) -> None:
    module, x = attention(filter="causal", bias=False), by_hand.draw(7, 16)
    if depth is not None:
        module.differential.set_depth(depth)
    initial = {None: 0.8, 1: 0.2, 5: 0.8 - 0.6 * math.exp(-1.2)}[depth]
    for module.path in ("literal", "fused"):
        result = module(x[None])[0].detach().numpy()
        np.testing.assert_allclose(result, expected(module, x, initial), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("blocks", [False, True])
def test_every_kernel_with_positions_and_values_is_the_same_on_both_paths(
    kernel: str, value: str, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if blocks:
        for name, size in {"LARGEST_MASK": 0, "LARGEST_KEPT": 0, "BLOCK": 0, "SMALLEST_BLOCK": 2}.items():
            monkeypatch.setattr(module_file, name, size)
    x, gradients = by_hand.draw(2, 6, 16), []
    module = attention(kernel=kernel, value=value, positions=tuple(POSITIONS), filter="window", left=3, kv_heads=1)
    scale = max(1.0, float(module.weights(x).detach().abs().max()) ** 2)
    for module.path in ("literal", "fused"):
        module.zero_grad()
        smoothed = module.smooth(x)
        smoothed.sum().backward()
        learned = [parameter.grad.flatten() for parameter in module.parameters() if parameter.grad is not None]
        gradients.append(torch.cat([smoothed.detach().flatten(), *learned]))
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-9, atol=1e-9 * scale)


def test_weights_are_the_difference_of_both_maps() -> None:
    module, x = attention(), by_hand.draw(1, 5, 16)
    weights = module.weights(x)
    assert weights.shape == (1, 2, 5, 5)
    total = 1 - module.differential.factor
    torch.testing.assert_close(weights.sum(-1), total.expand(1, 2, 5))
    torch.testing.assert_close(weights @ module.values_of(x), module.smooth(x), rtol=0, atol=1e-10)


def test_heads_that_share_keys_share_those_of_each_map() -> None:
    module, x = attention(kv_heads=1), by_hand.draw(1, 5, 16)
    whole, state = attention(), module.state_dict()
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        state[name] = torch.cat([state[name]] * 2)
    whole.load_state_dict(state)
    for module.path in ("literal", "fused"):
        torch.testing.assert_close(module(x), whole(x), rtol=0, atol=1e-10)


def test_decoding_keeps_values_once() -> None:
    module, x, cache = attention(positions=["rotary"], filter="causal", kv_heads=1), by_hand.draw(1, 6, 16), Cache()
    steps = [module(token, cache=cache) for token in x.split(1, 1)]
    torch.testing.assert_close(torch.cat(steps, 1), module(x), rtol=0, atol=1e-10)
    assert cache.keys.key.shape == (1, 2, 6, 4) and cache.keys.value.shape == (1, 1, 6, 8)


def test_a_mask_of_each_head_is_that_of_both_its_maps() -> None:
    module, x = attention(), by_hand.draw(1, 5, 16)
    mask = torch.ones(1, 2, 5, 5, dtype=torch.bool)
    mask[:, 1] = mask[:, 1].tril()
    for module.path in ("literal", "fused"):
        smoothed = module.smooth(x, mask=mask)
        torch.testing.assert_close(smoothed[:, 0], module.smooth(x)[:, 0])
        torch.testing.assert_close(smoothed[:, 1], module.smooth(x, mask=mask[:, 1])[:, 1])


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="head_width: two maps do not share 5 features; allowed: an even number"):
        KernelAttention(10, 2, maps="differential")
    with pytest.raises(ValueError, match="maps: 'double'; allowed: single, differential"):
        KernelAttention(10, 2, maps="double")
    with pytest.raises(ValueError, match="maps: differential; allowed "):
        GraphAttention(16, 2, 3, maps="differential")

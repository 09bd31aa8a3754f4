import math

import numpy as np
import pytest
import torch

from kdx.attention import Cache, KernelAttention
from kdx.attention.positions.forgetting import Forgetting
from tests.attention.by_hand import HEADS, WIDTH, attention, check, exponential
from tests.attention.largest_tensor import LargestTensor


def gates(module: KernelAttention, x: np.ndarray) -> np.ndarray:
    """f of each token and head, (T, H)."""
    weight, bias = (part.detach().numpy() for part in module.positions["forgetting"].gate.parameters())
    return 1 / (1 + np.exp(-(x @ weight.T + bias)))


def test_every_path_gives_what_a_loop_over_pairs_gives() -> None:
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


def test_an_open_gate_forgets_nothing_and_a_closed_one_everything() -> None:
    module, x = attention(positions=["forgetting"])
    plain = KernelAttention(WIDTH, HEADS, filter="causal").double()
    plain.load_state_dict(module.state_dict(), strict=False)
    gate = module.positions["forgetting"].gate
    torch.nn.init.zeros_(gate.weight)
    torch.nn.init.constant_(gate.bias, 60.0)
    torch.testing.assert_close(module(x), plain(x))
    torch.nn.init.constant_(gate.bias, -60.0)
    torch.testing.assert_close(module.weights(x), torch.eye(x.size(1)).double().expand(*x.shape[:1], HEADS, -1, -1))


def test_a_long_row_makes_no_tensor_of_pairs_and_gives_what_the_literal_path_gives() -> None:
    x = torch.randn(1, 600, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    module, found = attention(positions=["forgetting"])[0], []
    for module.path in ("fused", "literal"):
        module.zero_grad()
        with LargestTensor() as made:
            output = module.smooth(x)
            output.square().sum().backward()
        assert (made.numbers < 600 * 600) == (module.path == "fused")
        found.append([output, *(parameter.grad for parameter in module.parameters() if parameter.grad is not None)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_gates_keep_their_gradient_in_half_precision() -> None:
    x = torch.randn(2, 600, WIDTH, generator=torch.Generator().manual_seed(0))
    module, found = attention(positions=["forgetting"])[0].float(), []
    gate = module.positions["forgetting"].gate
    torch.nn.init.constant_(gate.bias, 1.0)
    for half in (False, True):
        module.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            module(x).float().square().sum().backward()
        found.append(gate.weight.grad.clone())
    assert (found[0] - found[1]).norm() < 0.1 * found[0].norm()


def test_padding_forgets_nothing() -> None:
    module, x = attention(positions=["forgetting"], tokens=5)
    junk = 9 * torch.ones(2, 2, WIDTH, dtype=torch.float64)
    padding = torch.tensor([[False, False, True, True, False, False, False]] * 2)
    for module.path in ("fused", "literal"):
        positions = torch.tensor([0, 1, 1, 1, 2, 3, 4])
        amid = module(torch.cat([x[:, :2], junk, x[:, 2:]], 1), query_positions=positions, key_padding=padding)
        torch.testing.assert_close(amid[:, 4:], module(x)[:, 2:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gates_are_at_least_in_32_bits(dtype: torch.dtype) -> None:
    module, x = attention(positions=["forgetting"])
    scheme = module.positions["forgetting"].to(dtype)
    assert isinstance(scheme, Forgetting) and scheme.of_tokens(x.to(dtype)).dtype is torch.float32

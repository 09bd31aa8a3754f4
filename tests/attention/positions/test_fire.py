import numpy as np
import pytest
import torch

from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.fire import FIRE
from tests.attention.by_hand import attention, check, exponential


def bias(scheme: FIRE, i: int, j: int, head: int) -> float:
    """f_θ(ψ(|i - j|) / ψ(max(i, j, L))) of one pair and head."""
    state = {name: value.numpy() for name, value in scheme.state_dict().items()}
    c, longest = np.exp(state["log_scale"]), np.exp(state["log_threshold"])
    proportion = np.log(1 + c * abs(i - j)) / np.log(1 + c * max(i, j, longest))
    units = [max(w[0] * proportion + b, 0.0) for w, b in zip(state["hidden.weight"], state["hidden.bias"], strict=True)]
    return float(state["output.weight"][head] @ np.array(units) + state["output.bias"][head])


@pytest.mark.parametrize("filter", ["causal", "full"])
def test_every_path_gives_what_a_loop_over_pairs_gives(filter: str) -> None:
    module, x = attention(positions=["fire"], filter=filter, threshold=3.0)
    scheme = module.positions["fire"]
    check(
        module,
        x,
        lambda q, k, i, j, head: exponential(q, k) * np.exp(bias(scheme, i, j, head)),
        later=filter == "full",
    )


def test_c_and_l_begin_as_in_the_paper() -> None:
    scheme = FIRE(Settings(8, 2, 4))
    assert scheme.log_scale.exp().item() == pytest.approx(0.1)
    assert scheme.log_threshold.exp().item() == pytest.approx(512)


def test_beyond_the_threshold_a_distance_counts_in_proportion_to_the_position() -> None:
    scheme = FIRE(Settings(8, 2, 4), threshold=10.0).double()

    def at(query: int, key: int) -> torch.Tensor:
        places = [TokenPositions(torch.tensor([where]), None) for where in (query, key)]
        return scheme.log_weight(torch.zeros(1, 2, 1, 4, dtype=torch.float64), *places).flatten()

    torch.testing.assert_close(at(3, 1), at(9, 7))
    assert not torch.allclose(at(30, 28), at(9, 7))
    # The first key is as far as can be, wherever the query is.
    torch.testing.assert_close(at(30, 0), at(500, 0))


def test_gradients_reach_every_parameter_also_at_position_zero() -> None:
    module, x = attention(positions=["fire"], threshold=2.0)
    module.smooth(x).square().sum().backward()
    for name, parameter in module.positions["fire"].named_parameters():
        assert parameter.grad.isfinite().all(), name
        # An output's bias is alike for all pairs of a row.
        assert parameter.grad.any() or name == "output.bias"

import torch

from kdx.attention import KernelAttention
from kdx.attention.encodings import ENCODINGS


def test_queries_and_keys_see_f_plus_t_and_values_see_f() -> None:
    torch.manual_seed(0)
    with_t = KernelAttention(8, 2, positions=("direct-sum",)).double()
    without = KernelAttention(8, 2).double()
    without.load_state_dict(with_t.state_dict())
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    t = ENCODINGS["sinusoidal"](8, 0).double()(torch.arange(4))
    weights = with_t.weights(x)
    torch.testing.assert_close(weights, without.weights(x + t))
    torch.testing.assert_close(with_t.smooth(x), weights @ without._project(x, None).value)


def test_with_values_with_position_it_is_the_sum_at_the_input() -> None:
    torch.manual_seed(0)
    inside = KernelAttention(8, 2, positions=("direct-sum",), value="with-position").double()
    plain = KernelAttention(8, 2).double()
    plain.load_state_dict(inside.state_dict())
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    t = ENCODINGS["sinusoidal"](8, 0).double()(torch.arange(4))
    torch.testing.assert_close(inside(x), plain(x + t))

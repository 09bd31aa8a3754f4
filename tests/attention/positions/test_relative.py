import pytest
import torch

from kdx.attention import KernelAttention
from kdx.attention.encodings import ENCODINGS
from kdx.attention.interfaces import Settings, TokenPositions
from kdx.attention.positions.relative import Relative
from kdx.vocabulary import Symmetry

R = ENCODINGS["sinusoidal"](8, 0)


def places(known: bool) -> tuple[TokenPositions, TokenPositions]:
    start = (5, 2) if known else (None, None)
    return TokenPositions(torch.arange(5, 8), None, start[0]), TokenPositions(torch.arange(2, 9), None, start[1])


@pytest.mark.parametrize("bias", ["none", "learned", "shared"])
@pytest.mark.parametrize("known", [True, False])
def test_factor_is_that_of_transformer_xl(bias: str, known: bool) -> None:
    torch.manual_seed(0)
    scheme, query = Relative(Settings(8, heads=2, head_width=4), xl_bias=bias), torch.randn(1, 2, 3, 4)
    v = torch.zeros(4)
    if bias != "none":
        torch.nn.init.normal_(scheme.v)
        v = scheme.v[1]
    log_weight = scheme.log_weight(query, *places(known))
    assert log_weight.shape == (1, 2, 3, 7)
    matrix = scheme.projection.weight[4:].T  # of the second head
    for i, j in ((0, 0), (1, 3), (2, 6)):
        expected = (query[0, 1, i] + v) @ (R(torch.tensor([3 + i - j]))[0] @ matrix) / 2
        torch.testing.assert_close(log_weight[0, 1, i, j], expected, rtol=1e-4, atol=1e-5)


def test_u_is_for_the_kernel_alone() -> None:
    torch.manual_seed(0)
    module = KernelAttention(8, 2, positions=("relative",), kernel="rbf").double()
    torch.nn.init.normal_(module.positions["relative"].u)
    x = torch.randn(1, 4, 8, dtype=torch.float64)
    projected = module._project(x, None)
    u = module.positions["relative"].u.unsqueeze(1)
    torch.testing.assert_close(projected.query, projected.raw + u)
    expected = -torch.cdist(projected.raw + u, projected.key).square() / 2
    factor = module.positions["relative"].log_weight(projected.raw, projected.at_query, projected.at_key)
    torch.testing.assert_close(module._log_weight(projected), expected + factor)


def test_symmetric_has_neither_u_nor_v() -> None:
    module = KernelAttention(8, 2, positions=("relative",), symmetry=Symmetry.SYMMETRIC)
    assert [name for name, _ in module.positions.named_parameters()] == ["relative.projection.weight"]
    for bias in ("learned", "shared"):
        with pytest.raises(ValueError, match="allowed with symmetric: none"):
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

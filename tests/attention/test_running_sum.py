"""A running sum by doubling is the sum of torch, with its gradient."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention import running_sum as module
from kdx.attention.running_sum import by_doubling, running_sum
from kdx.training.determinism import deterministic


@settings(deadline=None)  # a busy machine is no fault
@given(
    shape=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    length=st.integers(0, 70),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_by_doubling_is_the_sum_one_after_another(
    shape: list[int], length: int, seed: int, data: st.DataObject
) -> None:
    dim = data.draw(st.integers(0, len(shape) - 1))
    shape[dim] = length
    result, expected = [], []
    for total, its in ((by_doubling, result), (Tensor.cumsum, expected)):
        generator = torch.Generator().manual_seed(seed)
        terms = torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        sums = total(terms, data.draw(st.just(dim - len(shape))))
        weights = torch.randn(shape, generator=generator, dtype=torch.float64)
        (gradient,) = torch.autograd.grad((sums * weights).sum(), terms)
        its += [sums.detach(), gradient]
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_term_passes_through_more_additions_than_doublings(dtype: torch.dtype) -> None:
    """The sum of 4096 terms, each 1, is exact even in 8 bits, where one after another stops at 256."""
    terms = torch.ones(4096, dtype=dtype)
    powers = 2 ** torch.arange(13)
    assert by_doubling(terms, 0)[powers - 1].tolist() == powers.tolist()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_it_doubles_off_the_cpu_where_algorithms_are_to_be_deterministic(
    device: str, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tensor of the device `meta` has no numbers, and is on no CPU."""
    doubled = []
    monkeypatch.setattr(module, "by_doubling", lambda terms, dim: doubled.append(dim) or terms)
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(exact)
    try:
        running_sum(torch.ones(5, device=device), 0)
    finally:
        torch.use_deterministic_algorithms(before)
    assert doubled == [0] * (device == "meta" and exact)


def test_on_a_cpu_it_has_the_bits_of_torch() -> None:
    terms = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    with deterministic():
        assert torch.equal(running_sum(terms, 0), terms.cumsum(0))

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kdx.attention.mixers.convolution import Convolution
from tests.attention.by_hand import close, draw


def expected(layer: Convolution, row: Tensor, hidden: list[bool], neighbours: int, causal: bool) -> Tensor:
    """The formula, token by token."""
    outputs = []
    for i in range(len(row)):
        total = torch.zeros_like(row[0])
        for j in range(-neighbours, 1 if causal else neighbours + 1):
            if 0 <= i + j < len(row) and not hidden[i + j]:
                total = total + row[i + j] @ layer.kernel.weight[:, :, neighbours + j].T
        outputs.append(total)
    return torch.stack(outputs)


@settings(deadline=None)  # a busy machine is no fault
@given(hidden=st.lists(st.booleans(), min_size=1, max_size=7), neighbours=st.integers(0, 8), causal=st.booleans())
def test_each_neighbour_has_its_matrix(hidden: list[bool], neighbours: int, causal: bool) -> None:
    layer = Convolution(3, neighbours=neighbours, filter="causal" if causal else "full").double()
    x = draw(1, len(hidden), 3)
    close(layer(x, key_padding=torch.tensor([hidden]))[0], expected(layer, x[0], hidden, neighbours, causal))


@pytest.mark.parametrize("filter", ["full", "causal"])
@pytest.mark.parametrize("shift", [1, 3])
def test_shifting_the_tokens_shifts_the_output_away_from_the_ends(filter: str, shift: int) -> None:
    layer, x = Convolution(4, neighbours=2, filter=filter).double(), draw(2, 12, 4)
    inside = slice(2 + shift, 10)
    close(layer(x.roll(shift, 1))[:, inside], layer(x).roll(shift, 1)[:, inside])


@pytest.mark.parametrize(("filter", "seen"), [("full", {3, 4, 5, 6, 7}), ("causal", {5, 6, 7})])
def test_a_token_reaches_its_neighbours_only(filter: str, seen: set[int]) -> None:
    layer, x = Convolution(4, neighbours=2, filter=filter).double(), draw(1, 10, 4)
    x_changed = x.clone()
    x_changed[:, 5] += 1
    moved = (layer(x_changed) - layer(x)).abs().sum((0, 2)) > 1e-9
    assert set(moved.nonzero()[:, 0].tolist()) == seen


def test_no_neighbours_is_one_matrix_for_each_token_alone() -> None:
    layer, x = Convolution(4, neighbours=0).double(), draw(2, 5, 4)
    close(layer(x), x @ layer.kernel.weight[:, :, 0].T)

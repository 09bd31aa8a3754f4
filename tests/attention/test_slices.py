import gc
import weakref

import pytest
import torch
from torch import Tensor

from kdx.attention.interfaces import Part
from kdx.attention.slices import _Total, slices_of

PARTS: list[Part] = [slice(0, 5), slice(1, 3), torch.tensor([0, 4]), slice(2, 3)]


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_pieces_and_their_gradients_are_those_of_indexing() -> None:
    whole, other = draw(2, 1, 5, 3).requires_grad_(), draw(2, 1, 5, 3).requires_grad_()
    take = slices_of(whole * 2)
    for part in PARTS:
        torch.testing.assert_close(take(part), (other * 2)[:, :, part])
    for rounds in (1, 2):
        sum(take(part).square().sum() for part in PARTS).backward()
        sum((other * 2)[:, :, part].square().sum() for part in PARTS).backward()
        torch.testing.assert_close(whole.grad, other.grad, msg=str(rounds))
        take = slices_of(whole * 2)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_nothing_is_kept_after_the_last_piece(part: Part) -> None:
    """The whole's own storage is let go; a cycle through a node of autograd is one that no collection would find."""
    whole = draw(1, 1, 5, 3).requires_grad_()
    twice = whole * 2
    slices_of(twice)(part).sum().backward()
    alive = weakref.ref(twice.untyped_storage())
    del twice
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one) is _Total]
    assert alive() is None


def test_a_second_derivative_is_refused() -> None:
    whole = draw(1, 1, 5, 3).requires_grad_()
    (gradient,) = torch.autograd.grad(slices_of(whole)(slice(0, 2)).pow(3).sum(), whole, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()

"""The model of tours points from city to city, wherever in the list they stand."""

import pytest
import torch
from cells import SMALL
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.grid.spec import CellSpec
from kdx.models.tour import TourModel, greedy_tours, tour_lengths


def model(**axes) -> TourModel:
    torch.manual_seed(0)
    spec = CellSpec.model_validate({"task": "tour", "data": {"corpus": "any"}, "model": SMALL, **axes})
    return TourModel(spec).double().eval()


def cities(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def one_cycle(following: torch.Tensor) -> bool:
    city, seen = 0, []
    for _ in following:
        seen.append(city)
        city = int(following[city])
    return city == 0 and sorted(seen) == list(range(len(following)))


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["attention", "equivariant"]), st.permutations(range(10)))
def test_logits_follow_the_cities_to_their_places_in_the_list(mixer, order):
    arm, places = model(mixer=mixer), cities(2, 10)
    logits = arm(places)
    assert logits.shape == (2, 10, 10)
    torch.testing.assert_close(arm(places[:, order]), logits[:, order][:, :, order], rtol=0.0, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 10))
def test_greedy_tours_go_through_every_city_once_whatever_the_logits(seed, count):
    logits = torch.randn(4, count, count, generator=torch.Generator().manual_seed(seed))
    assert all(one_cycle(following) for following in greedy_tours(logits))


def test_a_city_seen_is_not_gone_to_again():
    # All want to go to city 1, itself too; the second choices are 3, and then 2.
    logits = torch.tensor([[[0.0, 9.0, 1.0, 2.0]] * 4])
    assert greedy_tours(logits).tolist() == [[1, 3, 0, 2]]


def test_length_of_a_square():
    square = torch.tensor([[[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]] * 2)
    lengths = tour_lengths(square, torch.tensor([[1, 2, 3, 0], [2, 3, 1, 0]]))
    assert lengths.tolist() == pytest.approx([4.0, 2 + 2 * 2**0.5])

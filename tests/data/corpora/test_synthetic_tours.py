from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kdx.data.corpora.synthetic_tours import CITIES, EXAMPLES, shortest
from kdx.vocabulary import Split


def cities(seed: int, count: int, number: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((number, count, 2))


def order_of(following) -> list[int]:
    """The cities from 0 on, until it comes again."""
    order = [0]
    while (city := int(following[order[-1]])) != 0:
        order.append(city)
        assert len(order) <= len(following)
    return order


def length(places, order) -> float:
    return float(np.linalg.norm(places[order] - places[np.roll(order, -1)], axis=-1).sum())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 6))
def test_no_other_order_is_shorter(seed, count):
    (places,) = cities(seed, count)
    order = order_of(shortest(places[None])[0])
    assert len(order) == count
    best = min(length(places, [0, *rest]) for rest in permutations(range(1, count)))
    assert length(places, order) <= best + 1e-12


def test_the_order_of_the_list_does_not_matter():
    places, order = cities(1, 8, number=5), np.random.default_rng(2).permutation(8)
    listed, shuffled = shortest(places), shortest(places[:, order])
    assert (order[shuffled] == listed[:, order]).all()


def test_every_city_of_the_corpus_is_left_and_entered_once():
    drawn = EXAMPLES.generate("any", 0, Split.TRAIN, 1001)  # one more than are computed at once
    assert drawn.inputs["cities"].shape == (1001, CITIES, 2)
    assert all(len(order_of(following)) == CITIES for following in drawn.targets)

import numpy as np

from kdx.data.corpora.synthetic_sets import EXAMPLES, FEATURES, FEWEST, MOST, PAIRS
from kdx.vocabulary import Split

DRAWN = EXAMPLES.generate("any", 0, Split.TRAIN, 500)
ELEMENTS, PADDING = DRAWN.inputs["elements"], DRAWN.inputs["padding"]


def test_the_class_is_the_number_of_opposites():
    for elements, padding, target in zip(ELEMENTS, PADDING, DRAWN.targets, strict=True):
        there = elements[~padding]
        opposite = (there[:, None] == -there).all(-1)
        assert opposite.sum() == 2 * target[0]
        assert opposite.any(1).sum() == 2 * target[0]


def test_sets_have_as_many_elements_as_they_are_said_to_have_and_zeros_after_them():
    assert ELEMENTS.shape == (500, MOST, FEATURES)
    sizes = (~PADDING).sum(1)
    assert set(sizes) == set(range(FEWEST, MOST + 1))
    assert ((np.arange(MOST) >= sizes[:, None]) == PADDING).all()
    assert (ELEMENTS[PADDING] == 0).all() and (abs(ELEMENTS[~PADDING]) <= 1).all()


def test_neither_the_place_of_an_element_nor_the_size_of_the_set_tells_the_class():
    place = (ELEMENTS[:, :1] == -ELEMENTS[:, 1:]).all(-1).argmax(1)[DRAWN.targets[:, 0] == PAIRS]
    assert len(set(place)) == MOST - 1
    sizes = (~PADDING).sum(1)
    assert all(set(sizes[DRAWN.targets[:, 0] == k]) == set(range(FEWEST, MOST + 1)) for k in range(PAIRS + 1))

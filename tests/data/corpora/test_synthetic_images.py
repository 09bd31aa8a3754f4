import numpy as np

from kdx.data.corpora.synthetic_images import EXAMPLES, LARGEST, LEVELS, SIDE, make

COUNT = 300
NUMBERS = np.random.default_rng(0).random((COUNT, EXAMPLES.draws))
# No noise, and the rectangle at its smallest.
NUMBERS[:, -SIDE * SIDE :] = 0.5
NUMBERS[:, 1:3] = 0.0


def images(numbers) -> np.ndarray:
    return make(numbers).inputs["pixels"].reshape(-1, SIDE, SIDE)


def share_equal(one, other) -> np.ndarray:
    return (one == other).mean((1, 2))


def test_a_pixel_is_what_is_left_of_it_or_above_it_or_two_steps_away_in_a_weave():
    pictures = images(NUMBERS)
    kinds = np.floor(3 * NUMBERS[:, 0])
    by_row, by_column, woven = (pictures[kinds == kind] for kind in range(3))
    assert min(map(len, (by_row, by_column, woven))) > 50
    assert share_equal(by_row[:, :, 1:], by_row[:, :, :-1]).min() > 0.8
    assert share_equal(by_column[:, 1:], by_column[:, :-1]).min() > 0.8
    even = (np.arange(SIDE)[:, None] + np.arange(SIDE)) % 2 == 0
    along = np.where(even[:, 2:], woven[:, :, 2:] == woven[:, :, :-2], True).mean((1, 2))
    down = np.where(even[2:], True, woven[:, 2:] == woven[:, :-2]).mean((1, 2))
    assert min(along.min(), down.min()) > 0.7


def test_a_rectangle_of_one_level_lies_inside_the_image():
    cloth, level = NUMBERS.copy(), 2
    cloth[:, 1:5] = 0.999  # the largest, in the lower right corner
    cloth[:, 5] = (level + 0.5) / LEVELS
    pictures = images(cloth)
    assert (pictures[:, -LARGEST:, -LARGEST:] == level).all()
    assert not (pictures[:, : SIDE - LARGEST] == level).all((1, 2)).any()

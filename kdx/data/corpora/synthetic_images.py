"""Generated images for prediction pixel by pixel, in which rows and columns matter.

An image has 12 × 12 pixels of 4 grey levels. It has a level for each row, a level for each column, or is woven, where
the two alternate; a rectangle of one level lies on it, and some pixels are noise. A pixel equals the pixel to its left,
above it, or two steps away in one of these directions; the earlier pixels show which.
"""

import numpy as np

from kdx.data.examples import Examples, ExamplesFromNumbers, Numbers
from kdx.vocabulary import Split

SIDE = 12  # pixels
LEVELS = 4
NOISE = 0.02  # share of pixels that take any level
SMALLEST, LARGEST = 3, 6  # sides of the rectangle


def make(numbers: Numbers) -> Examples:
    """Make `pixels` (N, 144), row by row, which are also the targets."""
    kind, box, rows, columns, noise = np.split(numbers, np.cumsum([1, 5, SIDE, SIDE]), axis=1)
    place = np.arange(SIDE)
    by_row, by_column = (np.floor(LEVELS * levels).astype(np.uint8) for levels in (rows, columns))
    woven = (place[:, None] + place) % 2
    # The visible thread: the row's where 0, the column's where 1.
    above = np.stack([0 * woven, 0 * woven + 1, woven])[np.floor(3 * kind[:, 0]).astype(int)]
    images = np.where(above, by_column[:, None, :], by_row[:, :, None])
    tall, wide = (SMALLEST + np.floor((1 + LARGEST - SMALLEST) * side).astype(int) for side in box[:, :2].T)
    top, left = (np.floor((SIDE + 1 - size) * u).astype(int) for size, u in ((tall, box[:, 2]), (wide, box[:, 3])))
    in_rows = (place >= top[:, None]) & (place < (top + tall)[:, None])
    in_columns = (place >= left[:, None]) & (place < (left + wide)[:, None])
    level = np.floor(LEVELS * box[:, 4]).astype(np.uint8)
    images = np.where(in_rows[:, :, None] & in_columns[:, None, :], level[:, None, None], images)
    pixels = images.reshape(len(numbers), SIDE * SIDE)
    pixels = np.where(noise < NOISE, np.floor(LEVELS * noise / NOISE), pixels).astype(np.uint8)
    return Examples({"pixels": pixels}, pixels)


EXAMPLES = ExamplesFromNumbers(
    task="image",
    sizes={Split.TRAIN: 6000, Split.VALID: 200, Split.TEST: 200},
    tokens=SIDE * SIDE,
    classes=LEVELS,
    draws=6 + 2 * SIDE + SIDE * SIDE,
    make=make,
)

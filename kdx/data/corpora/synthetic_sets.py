"""Generated sets for classification by relations between their elements.

A set has 6 to 10 elements, vectors of 4 features from [-1, 1). The class is the number of pairs of opposites, x and -x,
among them: 0 to 3. A single element carries no information; the sum carries a little, since opposites cancel.
"""

import numpy as np

from kdx.data.examples import Examples, ExamplesFromNumbers, Numbers
from kdx.vocabulary import Split

FEATURES = 4
FEWEST, MOST = 6, 10  # elements
PAIRS = 3  # at most


def make(numbers: Numbers) -> Examples:
    """Make `elements` (N, 10, 4) and `padding` (N, 10), True where present is no element; targets (N, 1)."""
    kinds, order, features = np.split(numbers, [2, 2 + MOST], axis=1)
    count = FEWEST + np.floor((1 + MOST - FEWEST) * kinds[:, 0]).astype(int)
    pairs = np.floor((1 + PAIRS) * kinds[:, 1]).astype(np.int64)
    elements = (2 * features - 1).reshape(len(numbers), MOST, FEATURES)
    first = np.arange(0, 2 * PAIRS, 2)
    paired = (np.arange(PAIRS) < pairs[:, None])[:, :, None]
    elements[:, first + 1] = np.where(paired, -elements[:, first], elements[:, first + 1])
    present = np.arange(MOST) < count[:, None]
    # Existing elements come first, in random order.
    shuffled = np.argsort(order + ~present, axis=1)
    elements = np.take_along_axis(np.where(present[:, :, None], elements, 0.0), shuffled[:, :, None], axis=1)
    return Examples({"elements": elements.astype(np.float32), "padding": ~present}, pairs[:, None])


EXAMPLES = ExamplesFromNumbers(
    task="set",
    sizes={Split.TRAIN: 20000, Split.VALID: 1000, Split.TEST: 1000},
    tokens=MOST,
    classes=PAIRS + 1,
    draws=2 + MOST + MOST * FEATURES,
    make=make,
)

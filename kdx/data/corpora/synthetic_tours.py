"""The travelling salesperson problem: ten cities in the unit square, and for each the next city on the shortest tour.

Tours are exact, by dynamic programming over subsets (Held & Karp 1962), and go counter-clockwise, so the next city is
unique. The cities are listed in random order.
"""

import numpy as np
from numpy.typing import NDArray

from kdx.data.examples import Examples, ExamplesFromNumbers, Numbers
from kdx.vocabulary import Split

CITIES = 10
_AT_ONCE = 1000  # sets of cities, for which the tables of the programme take some 50 MB


def make(numbers: Numbers) -> Examples:
    """Make `cities` (N, 10, 2), their coordinates; targets (N, 10), the next city of each."""
    cities = numbers.astype(np.float32).reshape(len(numbers), -1, 2)
    parts = [shortest(cities[start : start + _AT_ONCE]) for start in range(0, len(cities), _AT_ONCE)]
    return Examples({"cities": cities}, np.concatenate(parts))


def shortest(cities: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return each city's next one (N, n) on the shortest tours through cities (N, n, 2), counter-clockwise."""
    where = cities.astype(np.float64).transpose(1, 2, 0)  # (n, 2, N)
    steps = where[:, None] - where
    distance = np.sqrt((steps**2).sum(2))  # (n, n, N)
    last = len(where) - 1
    # best[S, j]: the shortest way from the last city through all of S to j in S; before[S, j]: the city before j on it.
    best = np.full((1 << last, last, where.shape[-1]), np.inf)
    before = np.zeros(best.shape, np.int8)
    for subset in range(1, 1 << last):
        members = [city for city in range(last) if subset >> city & 1]
        for city in members:
            rest = subset & ~(1 << city)
            if not rest:
                best[subset, city] = distance[last, city]
                continue
            others = [other for other in members if other != city]
            ways = best[rest, others] + distance[others, city]
            nearest = ways.argmin(0)
            best[subset, city] = np.take_along_axis(ways, nearest[None], axis=0)[0]
            before[subset, city] = np.array(others)[nearest]
    return _counter_clockwise(where, _walked_back(best[-1] + distance[:last, last], before))


def _walked_back(whole: NDArray[np.float64], before: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the cities of each shortest tour in order, (n, N), from the lengths (n - 1, N) by last city."""
    last, count = whole.shape
    each = np.arange(count)
    order = np.full((last + 1, count), last)
    city, subset = whole.argmin(0), np.full(count, (1 << last) - 1)
    for place in range(last - 1, -1, -1):
        order[place] = city
        city, subset = before[subset, city, each].astype(np.int64), subset & ~(1 << city)
    return order


def _counter_clockwise(where: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    x, y = np.take_along_axis(where, order[:, None], axis=0).transpose(1, 0, 2)  # (n, N)
    area = (x * np.roll(y, -1, 0) - y * np.roll(x, -1, 0)).sum(0)
    after = np.where(area > 0, np.roll(order, -1, 0), np.roll(order, 1, 0))
    following = np.empty_like(order)
    np.put_along_axis(following, order, after, axis=0)
    return following.T


EXAMPLES = ExamplesFromNumbers(
    task="tour",
    sizes={Split.TRAIN: 12000, Split.VALID: 500, Split.TEST: 500},
    tokens=CITIES,
    classes=CITIES,
    draws=2 * CITIES,
    make=make,
)

"""The sliding window: the nearest keys on either side, every d-th of them, and a few at the very beginning.

A window alone loses the first tokens, to which many heads give their spare weight; Xiao et al. 2024 keep them visible
as sinks. In a decoder the window reaches back only.
"""

from typing import Any

from torch import Tensor

from kdx.attention.interfaces import FilterFunction, Settings
from kdx.words import option


class Window(FilterFunction):
    """The nearest keys, and the first keys of the row."""

    name = "window"
    formula = "M(x_q, S) = {x_k: -d r ≤ i - j ≤ d l, (i - j) mod d = 0} ∪ {x_k: 0 ≤ j < s}"
    source = "Beltagy et al. 2020, Sec. 3.1; Xiao et al. 2024 (sinks)"
    left: int = option(128, minimum=0)
    """l: the number of visible keys before the query."""
    right: int = option(128, minimum=0)
    """r: the number of visible keys after the query; in a decoder none."""
    dilation: int = option(1, minimum=1)
    """d: the step from one visible key to the next, in tokens."""
    sinks: int = option(0, minimum=0)
    """s: the number of first tokens, which every query sees; in a decoder, every query after them."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.before = self.left * self.dilation
        self.after = 0 if self.past else self.right * self.dilation

    def visible(self, query: Tensor, key: Tensor) -> Tensor:
        distance = query - key
        chosen = (distance <= self.before) & (distance >= -self.after)
        if self.dilation > 1:
            chosen = chosen & (distance % self.dilation == 0)
        if self.sinks:
            first = (key >= 0) & (key < self.sinks)
            chosen = chosen | (first & (distance >= 0) if self.past else first)
        return chosen

    def seen(self, queries: range, keys: range) -> slice | list[int]:
        start = min(max(queries.start - self.before - keys.start, 0), len(keys))
        stop = min(max(queries.stop + self.after - keys.start, 0), len(keys))
        first = range(max(-keys.start, 0), min(self.sinks - keys.start, len(keys)))
        if self.past:
            first = range(first.start, min(first.stop, stop))
        if not first or (start <= first.start and first.stop <= stop):
            # If no key is left, one is kept, to be hidden later.
            return slice(start, stop) if start < stop else slice(0, 1)
        return sorted({*first, *range(start, stop)})

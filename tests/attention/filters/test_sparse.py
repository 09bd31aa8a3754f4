"""A sparse pattern looks back only where it is asked to."""

import torch

from kdx.attention.filters import FILTERS
from kdx.attention.interfaces import Settings
from kdx.vocabulary import Reach

POSITIONS = torch.arange(9)


def test_a_pattern_that_reaches_back_shows_nothing_that_stands_later() -> None:
    options = {"strided": {"stride": 3}, "fixed": {"stride": 3}, "window": {"left": 2, "right": 2, "sinks": 1}}
    for word, own in options.items():
        past, both = (FILTERS[word](Settings(4, 1, 4, reach=reach), **own) for reach in (Reach.PAST, Reach.BOTH))
        later = POSITIONS[:, None] < POSITIONS
        assert not past.visible(POSITIONS[:, None], POSITIONS)[later].any()
        assert both.visible(POSITIONS[:, None], POSITIONS)[later].any()

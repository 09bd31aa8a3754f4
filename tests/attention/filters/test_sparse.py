"""A sparse pattern looks back only where it is asked to."""

import torch

from kdx.attention.filters import FILTERS
from kdx.attention.interfaces import Settings
from kdx.vocabulary import Reach

POSITIONS = torch.arange(9)


def test_a_pattern_that_reaches_back_shows_nothing_that_stands_later() -> None:
    for word in ("strided", "fixed"):
        past, both = (FILTERS[word](Settings(4, 1, 4, reach=reach), stride=3) for reach in (Reach.PAST, Reach.BOTH))
        later = POSITIONS[:, None] < POSITIONS
        assert not past.visible(POSITIONS[:, None], POSITIONS)[later].any()
        assert both.visible(POSITIONS[:, None], POSITIONS)[later].any()

"""What all feature spaces share."""

import inspect

from kdx.attention import KernelAttention
from kdx.attention.spaces.parts import FEATURES, PLACED


def test_a_space_leaves_every_part_open_that_it_does_not_set() -> None:
    offered = set(inspect.signature(KernelAttention).parameters)
    # A memory is of streams, which are sequences; options are those of the parts. Two maps share a head's features,
    # which those of several modalities, and vectors of labels, are not ready for.
    own = {"width", "heads", "positions", "memory_length", "maps", "options"}
    assert set(PLACED) == offered - own


def test_parts_of_features_are_parts() -> None:
    assert set(FEATURES) < set(PLACED)

"""What all feature spaces share."""

import inspect
from typing import get_type_hints

from kdx.attention import KernelAttention
from kdx.attention.spaces.parts import Parts, PlacedParts


def test_a_space_leaves_every_part_open_that_it_does_not_set() -> None:
    offered = set(inspect.signature(KernelAttention).parameters)
    # A memory is of streams, which are sequences; how wide a compared vector is, and so its scale, is the space's own;
    # and it has Vaswani et al.'s sinusoids.
    own = {"width", "heads", "positions", "memory_length", "scale", "temperature", "sinusoids"}
    assert set(get_type_hints(PlacedParts)) == offered - own


def test_parts_of_features_are_parts() -> None:
    assert set(get_type_hints(Parts)) < set(get_type_hints(PlacedParts))

"""A mean by slice is that of the targets in the slice, whatever the batches were."""

from bisect import bisect_left

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kdx.tasks.difficulty import EDGES, slice_names
from kdx.training.sums import Slices

TARGETS = st.lists(st.tuples(st.integers(0, 2**30), st.floats(0, 100, width=32)), min_size=1, max_size=30)


def added(slices: Slices, targets: list[tuple[int, float]], respect: str = "pairs") -> Slices:
    values, measured = zip(*targets, strict=True)
    slices.add(respect, torch.tensor(values), torch.tensor(measured))
    return slices


@given(TARGETS, st.integers(0, 30))
def test_every_target_counts_in_its_slice_and_batches_do_not_matter(targets, cut):
    by_slice: dict[str, list[float]] = {}
    for value, measured in targets:
        by_slice.setdefault(slice_names("pairs")[bisect_left(EDGES, value)], []).append(measured)
    expected = {name: sum(its) / len(its) for name, its in by_slice.items()}
    slices = Slices()
    for batch in (targets[:cut], targets[cut:]):
        if batch:
            added(slices, batch)
    assert slices.means() == pytest.approx(expected)
    # From the least values on.
    assert list(slices.means()) == [name for name in slice_names("pairs") if name in expected]


def test_nothing_added_is_nothing_measured_and_an_empty_batch_adds_nothing():
    assert Slices().means() == {}
    slices = Slices()
    slices.add("pairs", torch.tensor([], dtype=torch.long), torch.tensor([]))
    assert slices.means() == {}


def test_respects_do_not_mix():
    slices = added(added(Slices(), [(3, 1.0)]), [(3, 5.0), (4, 6.0)], "distance")
    assert slices.means() == {"pairs=3-4": 1.0, "distance=3-4": 5.5}


def test_sums_have_sixty_four_bits():
    targets = [(1, 2.0**24), *[(1, 1.0)] * 8]
    assert added(Slices(), targets).means()["pairs=1"] == (2**24 + 8) / 9


def test_counts_of_right_answers_are_exact():
    slices = Slices()
    slices.add("pairs", torch.ones(3, dtype=torch.long), 100 * torch.tensor([True, True, False]))
    assert slices.means() == {"pairs=1": 200 / 3}

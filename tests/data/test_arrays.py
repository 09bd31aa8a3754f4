import errno
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.data import arrays
from kdx.data.arrays import map_array, map_lists, token_lists, write_array, write_lists

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=20), max_size=20)


@pytest.fixture(autouse=True, params=[3, 1 << 20], ids=["small chunks", "one chunk"])
def chunk(request, monkeypatch):
    """How many numbers are held before they are written."""
    monkeypatch.setattr(arrays, "CHUNK", request.param)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Return the path of files that are written again and again."""
    return tmp_path_factory.mktemp("arrays") / "some"


@pytest.mark.parametrize(("kind", "dtype"), [("i", np.int32), ("q", np.int64)])
@given(lists=LISTS)
def test_what_was_written_piece_by_piece_is_one_array(place, kind, dtype, lists):
    with write_array(place, kind=kind, below=10) as writer:
        for numbers in lists:
            writer.extend(numbers)
    expected = np.array([number for numbers in lists for number in numbers], dtype)
    assert map_array(place).dtype == dtype
    assert np.array_equal(map_array(place), expected)
    assert np.array_equal(writer.counts, np.bincount(expected, minlength=10))
    assert place.read_bytes() == _saved(place, expected), "as numpy itself writes it"


def _saved(place: Path, expected: np.ndarray) -> bytes:
    np.save(place.with_suffix(".npy"), expected)
    return place.with_suffix(".npy").read_bytes()


@given(lists=LISTS)
def test_lists_come_back(place, lists):
    with write_lists(place, below=10) as writer:
        for numbers in lists:
            writer.append(numbers)
    for back in (map_lists(place), token_lists(lists)):
        assert [numbers.tolist() for numbers in back] == lists
        assert back.lengths.tolist() == list(map(len, lists))
    assert writer.counts.sum() == sum(map(len, lists))


def test_a_number_that_does_not_fit_is_refused(place):
    with pytest.raises(OverflowError), write_array(place) as writer:
        writer.extend([2**31])


def test_an_array_is_read_only_where_it_is_used(place):
    with write_array(place) as writer:
        writer.extend(range(1000))
    mapped = map_array(place)
    assert isinstance(mapped.base, np.memmap)
    assert not mapped.flags.writeable


def test_a_full_disk_is_told():
    """The file is the device that is always full."""
    with pytest.raises(OSError) as caught, write_array(Path("/dev/full")) as writer:
        writer.extend(range(10))
    assert caught.value.errno == errno.ENOSPC

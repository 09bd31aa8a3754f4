"""Arrays longer than memory: written to a file piece by piece, read where they lie."""

from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

Counts = NDArray[np.int64]

CHUNK = 1 << 20
"""Numbers that are held before they are written."""


class ArrayWriter:
    """Numbers on their way into a .npy file."""

    def __init__(self, file: IO[bytes], kind: str, below: int) -> None:
        self.counts: Counts = np.zeros(below, np.int64)
        """How often each number under `below` has come, once the file is whole."""
        self._file = file
        self._pending = array(kind)
        self._dtype = np.dtype(kind)
        self._length = 0
        self._write_header()

    def __len__(self) -> int:
        """Numbers so far."""
        return self._length + len(self._pending)

    def extend(self, numbers: Iterable[int]) -> None:
        """These come next."""
        self._pending.extend(numbers)
        if len(self._pending) >= CHUNK:
            self._write()

    def finish(self) -> None:
        """Makes the file whole."""
        self._write()
        self._file.seek(0)
        self._write_header()

    def _write(self) -> None:
        self._file.write(self._pending)
        if len(self.counts):
            self.counts += np.bincount(np.frombuffer(self._pending, self._dtype), minlength=len(self.counts))
        self._length += len(self._pending)
        del self._pending[:]

    def _write_header(self) -> None:
        # The format keeps room for the length to grow, so that this header can be written again in its place.
        description = npy.dtype_to_descr(self._dtype)
        npy.write_array_header_1_0(self._file, {"descr": description, "fortran_order": False, "shape": (self._length,)})


class ListsWriter:
    """Lists of numbers on their way into two files: the numbers end to end, and where each list begins."""

    def __init__(self, flat: ArrayWriter, offsets: ArrayWriter) -> None:
        self._flat, self._offsets = flat, offsets
        self._offsets.extend((0,))

    @property
    def counts(self) -> Counts:
        """How often each number has come, once the files are whole."""
        return self._flat.counts

    def append(self, numbers: Iterable[int]) -> None:
        """This list comes next."""
        self._flat.extend(numbers)
        self._offsets.extend((len(self._flat),))


@contextmanager
def write_array(path: Path, *, kind: str = "i", below: int = 0) -> Iterator[ArrayWriter]:
    """A .npy file, whole once the block ends well.

    Args:
        kind: as Python's `array` has it: `i` for 32 bits, `q` for 64.
        below: all numbers are under it, and are counted; 0 counts none.
    """
    with path.open("wb") as file:
        writer = ArrayWriter(file, kind, below)
        yield writer
        writer.finish()


@contextmanager
def write_lists(stem: Path, *, below: int) -> Iterator[ListsWriter]:
    """`<stem>.flat.npy` and `<stem>.offsets.npy`, whole once the block ends well; all numbers are under `below`."""
    with (
        write_array(stem.with_name(f"{stem.name}.flat.npy"), below=below) as flat,
        write_array(stem.with_name(f"{stem.name}.offsets.npy"), kind="q") as offsets,
    ):
        yield ListsWriter(flat, offsets)


def map_array(path: Path) -> NDArray[Any]:
    """The array in a .npy file, read only as far as it is used."""
    # As a plain array: a slice of a memmap costs several times one of an array over the same memory.
    return np.asarray(np.load(path, mmap_mode="r"))


def map_lists(stem: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """The numbers end to end, and where each list begins and the last one ends."""
    return map_array(stem.with_name(f"{stem.name}.flat.npy")), map_array(stem.with_name(f"{stem.name}.offsets.npy"))

"""Arrays larger than memory: written to a file in pieces, and mapped from it."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Tokens = NDArray[np.int32]

CHUNK = 1 << 20
"""Number of values that are buffered before they are written."""


class ArrayWriter:
    """Writes numbers into a .npy file."""

    def __init__(self, file: IO[bytes], kind: str, below: int) -> None:
        self.counts: Counts = np.zeros(below, np.int64)
        """Number of times that each number below `below` occurs, once the file is complete."""
        self._file = file
        self._pending = array(kind)
        self._dtype = np.dtype(kind)
        self._length = 0
        self._write_header()

    def __len__(self) -> int:
        """The number of values so far."""
        return self._length + len(self._pending)

    def extend(self, numbers: Iterable[int]) -> None:
        """Appends numbers."""
        self._pending.extend(numbers)
        if len(self._pending) >= CHUNK:
            self._write()

    def finish(self) -> None:
        """Completes the file."""
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
        # The format pads the header for a longer length, so that it can be overwritten in place.
        description = npy.dtype_to_descr(self._dtype)
        npy.write_array_header_1_0(self._file, {"descr": description, "fortran_order": False, "shape": (self._length,)})


class ListsWriter:
    """Writes lists of numbers into two files: the concatenated numbers, and the offset of each list."""

    def __init__(self, flat: ArrayWriter, offsets: ArrayWriter) -> None:
        self._flat, self._offsets = flat, offsets
        self._offsets.extend((0,))

    @property
    def counts(self) -> Counts:
        """Number of times that each number occurs, once the files are complete."""
        return self._flat.counts

    def append(self, numbers: Iterable[int]) -> None:
        """Appends a list."""
        self._flat.extend(numbers)
        self._offsets.extend((len(self._flat),))


@contextmanager
def write_array(path: Path, *, kind: str = "i", below: int = 0) -> Iterator[ArrayWriter]:
    """Writes a .npy file, which is complete once the block ends without an exception.

    Args:
        kind: type code of Python's `array`: `i` for 32 bits, `q` for 64.
        below: upper bound of all numbers, which are counted; 0 counts none.
    """
    with path.open("wb") as file:
        writer = ArrayWriter(file, kind, below)
        yield writer
        writer.finish()


@contextmanager
def write_lists(stem: Path, *, below: int) -> Iterator[ListsWriter]:
    """Writes `<stem>.flat.npy` and `<stem>.offsets.npy`, complete once the block ends; `below` bounds all numbers."""
    with (
        write_array(stem.with_name(f"{stem.name}.flat.npy"), below=below) as flat,
        write_array(stem.with_name(f"{stem.name}.offsets.npy"), kind="q") as offsets,
    ):
        yield ListsWriter(flat, offsets)


def map_array(path: Path) -> NDArray[Any]:
    """Maps the array in a .npy file, which is read only where it is used."""
    # A plain array, since a slice of a memmap takes several times as long as one of an array over the same memory.
    return np.asarray(np.load(path, mmap_mode="r"))


@dataclass(frozen=True)
class TokenLists:
    """Lists of token ids of any lengths, concatenated."""

    flat: Tokens
    """Every token, list after list."""
    offsets: NDArray[np.int64]
    """The start of each list and the end of the last one, (lists + 1,)."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Tokens:
        return self.flat[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens in each list."""
        return np.diff(self.offsets)


def token_lists(lists: Iterable[Sequence[int]]) -> TokenLists:
    """Concatenates lists."""
    each = [np.asarray(ids, np.int32) for ids in lists]
    offsets = np.cumsum([0, *map(len, each)], dtype=np.int64)
    return TokenLists(np.concatenate(each) if each else np.zeros(0, np.int32), offsets)


def map_lists(stem: Path) -> TokenLists:
    """Maps the lists that `write_lists` wrote."""
    flat, offsets = (map_array(stem.with_name(f"{stem.name}.{part}.npy")) for part in ("flat", "offsets"))
    return TokenLists(flat, offsets)

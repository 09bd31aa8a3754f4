"""Keeps the rows of an answer in memory or, if there are many, in a temporary file."""

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO, Any, Protocol, Self

from kdx.errors import StorageError

CHUNK = 1000  # rows
IN_MEMORY = 1 << 24  # bytes of an answer; a longer one goes to a file


class Rows:
    """The rows of an answer, which can be iterated over more than once."""

    def __init__(self, columns: tuple[str, ...], kept: IO[bytes], count: int) -> None:
        self.columns = columns
        """Names of the columns, made unique."""
        self.count = count
        self._kept = kept

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._kept.seek(0)
        for _ in range(0, self.count, CHUNK):
            yield from pickle.load(self._kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._kept.close()


class Cursor(Protocol):
    """A driver's cursor [PEP 249] that has rows."""

    @property
    def description(self) -> Sequence[Any] | None: ...

    def fetchmany(self, size: int = ..., /) -> Sequence[Any]: ...


def kept(cursor: Cursor) -> Rows:
    """Keeps all remaining rows of a cursor.

    Raises:
        StorageError: there is no room for them.
    """
    # Rows closes it.
    kept = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
    count = 0
    try:
        while rows := cursor.fetchmany(CHUNK):
            pickle.dump(rows, kept, protocol=pickle.HIGHEST_PROTOCOL)
            count += len(rows)
    except OSError as error:
        kept.close()
        raise StorageError(
            f"no room for the answer: {error.strerror}",
            place=tempfile.gettempdir(),
            hint="set TMPDIR to another folder",
        ) from error
    except BaseException:
        kept.close()
        raise
    names: list[str] = []
    for name, *_ in cursor.description or ():
        before = sum(other == name or other.startswith(f"{name}:") for other in names)
        names.append(f"{name}:{before + 1}" if before else name)
    return Rows(tuple(names), kept, count)

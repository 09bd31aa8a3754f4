"""The rows of an answer in SQL."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Rows:
    """The rows of an answer."""

    columns: tuple[str, ...]
    """Names of the columns, made unique."""
    values: Sequence[tuple[Any, ...]]

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.values)


class Cursor(Protocol):
    """A driver's cursor [PEP 249] that has rows."""

    @property
    def description(self) -> Sequence[Any] | None: ...

    def fetchall(self) -> Sequence[Any]: ...


def fetched(cursor: Cursor) -> Rows:
    """Return all remaining rows of a cursor; of columns with one name the second is called `name:2`."""
    counts: Counter[str] = Counter()
    columns: list[str] = []
    for name, *_ in cursor.description or ():
        counts[name] += 1
        columns.append(name if counts[name] == 1 else f"{name}:{counts[name]}")
    return Rows(tuple(columns), cursor.fetchall())

"""Reads and writes rows as they are stored, of any kind of database: each text as its bytes, JSON as its text.

Reading through the types of the columns would lose what a copy must keep: the order and the spelling of JSON, and text
that is not UTF-8. Values are checked all the same, since a database may come from somebody else.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, LargeBinary, Table, bindparam, insert, select, type_coerce, update
from sqlalchemy.sql import Executable
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from kdx.store.columns import Hash, Json, Number, OneWordOf, ShortText, Strict
from kdx.store.schema import value_of

AT_A_TIME = 500
"""Number of rows that are held in memory at once."""

Row = tuple[Any, ...]
"""The values of all columns of a table, in their order: texts and JSON as UTF-8."""

_TEXTS = (ShortText, Hash, OneWordOf, Json)
_BITS = {"value": "bits", "valid_score": "valid_bits", "test_score": "test_bits"}
"""Column with a number → the column with its bits."""


class Utf8(FunctionElement[bytes]):
    """The bytes of a text."""

    type = LargeBinary()
    inherit_cache = True


class FromUtf8(ColumnElement[Any]):
    """The text of a parameter with bytes, as the type of a column."""

    inherit_cache = False

    def __init__(self, name: str, type_: Any) -> None:
        self.bytes = bindparam(name, type_=LargeBinary())
        self.type = type_


class KeysGoOn(Executable, ClauseElement):
    """Makes the keys that a database gives to new rows larger than all that are there.

    It follows rows that were written with keys of their own.
    """

    inherit_cache = False

    def __init__(self, key: Any) -> None:
        self.key = key


def read(connection: Connection, table: Table, where: ColumnElement[bool] | None = None) -> Iterator[list[Row]]:
    """The rows of a table, some at a time, in no order.

    Raises:
        UnexpectedValueError: a row holds what kdx never writes there.
    """
    columns = [Utf8(one) if isinstance(one.type, _TEXTS) else type_coerce(one, NullType()) for one in table.c]
    named = [column.label(f"c{number}") for number, column in enumerate(columns)]
    rows = select(*named).select_from(table)
    if where is not None:
        rows = rows.where(where)
    checks = [_check(column.type) for column in table.c]
    pairs = _pairs(table)
    for batch in connection.execute(rows, execution_options={"yield_per": AT_A_TIME}).partitions():
        found = [tuple(check(value) for check, value in zip(checks, row, strict=True)) for row in batch]
        yield [_with_nan(row, pairs) for row in found] if pairs else found


def write(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Inserts rows as `read` gives them."""
    if rows:
        connection.execute(insert(table).values(_texts(table)), _parameters(table, rows))


def replace(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Gives rows of a table with one key, which are there, the values of these rows."""
    if rows:
        (key,) = table.primary_key
        values = {one.name: bindparam(_name(one.name), type_=one.type) for one in table.c}
        which = key == values.pop(key.name)
        names = [_name(one.name) for one in table.c]
        parameters = [dict(zip(names, row, strict=True)) for row in rows]
        connection.execute(update(table).where(which).values({**values, **_texts(table)}), parameters)


def keys_go_on(connection: Connection, tables: Iterable[Table]) -> None:
    """Lets the keys of further rows follow those that are there, after rows were written with keys of their own."""
    for table in tables:
        if table.autoincrement_column is not None:
            connection.execute(KeysGoOn(table.autoincrement_column))


class Digest:
    """What rows have in common with the same rows in another order or another kind of database: count and hash."""

    def __init__(self, table: Table) -> None:
        self.rows = 0
        self._sum = 0
        self._numbers = [place for place, column in enumerate(table.c) if isinstance(column.type, Number)]

    def add(self, rows: Iterable[Row]) -> None:
        """Takes these rows along."""
        for row in rows:
            if self._numbers:
                row = self._plain(row)
            # Each row counts by its own hash, so that the order does not matter.
            self._sum += int.from_bytes(hashlib.sha256(repr(row).encode()).digest())
            self.rows += 1

    def _plain(self, row: Row) -> Row:
        """Without what SQLite cannot hold in numbers, and holds in their bits: NaN and the sign of zero."""
        plain = list(row)
        for place in self._numbers:
            number = plain[place]
            plain[place] = None if number is None or math.isnan(number) else float(number) + 0.0
        return tuple(plain)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and (self.rows, self._sum) == (other.rows, other._sum)

    __hash__ = None  # type: ignore[assignment]

    def hexdigest(self) -> str:
        """A text that equal digests share."""
        return f"{self.rows}-{self._sum % 2**256:064x}"


def _check(kind: Any) -> Any:
    assert isinstance(kind, Strict)
    check, nullable = kind.check, kind.nullable
    if isinstance(kind, _TEXTS):

        def checked(value: Any) -> Any:
            if value is None and nullable:
                return None
            if not isinstance(value, bytes | memoryview):
                return kind.refuse(value)
            check(bytes(value).decode(errors="surrogateescape"))
            return bytes(value)

        return checked
    return lambda value: None if value is None and nullable else check(value)


def _pairs(table: Table) -> tuple[tuple[int, int], ...]:
    places = {column.name: place for place, column in enumerate(table.c)}
    return tuple((places[one], places[bits]) for one, bits in _BITS.items() if one in places and bits in places)


def _with_nan(row: Row, pairs: Iterable[tuple[int, int]]) -> Row:
    """NaN in place of the NULL that SQLite makes of it; other databases hold it."""
    for number, bits in pairs:
        if row[number] is None and row[bits] is not None and math.isnan(value_of(row[bits])):
            row = (*row[:number], math.nan, *row[number + 1 :])
    return row


def _name(column: str) -> str:
    # SQLAlchemy takes a parameter with the name of a column for its own.
    return f"new_{column}"


def _texts(table: Table) -> dict[str, FromUtf8]:
    return {one.name: FromUtf8(_name(one.name), one.type) for one in table.c if isinstance(one.type, _TEXTS)}


def _parameters(table: Table, rows: Iterable[Row]) -> list[Mapping[str, Any]]:
    names = [_name(one.name) if isinstance(one.type, _TEXTS) else one.name for one in table.c]
    return [dict(zip(names, row, strict=True)) for row in rows]

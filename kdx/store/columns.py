"""Strict column types: each knows which values its column may hold, and checks every value that is read.

A database may come from somebody else. The allowed values are also a CHECK of the table, `Holds`, in the SQL of the
backend, but a database from elsewhere may lack it.
"""

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NoReturn

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    Integer,
    LargeBinary,
    String,
    Text,
    TypeDecorator,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import Grouping
from sqlalchemy.types import TypeEngine

LARGEST = 2**63 - 1
QUOTED = 60
"""Largest number of characters of a value that a message quotes."""

Check = Callable[[Any], Any]


class UnexpectedValueError(ValueError):
    """A database holds a value that kdx never writes."""

    def __init__(self, column: str, value: object, allowed: str) -> None:
        self.column, self.allowed = column, allowed
        quoted = repr(value[: QUOTED + 1] if isinstance(value, str | bytes) else value)
        self.value = quoted if len(quoted) <= QUOTED else f"{quoted[:QUOTED]}…"
        super().__init__(f"{column} is {self.value}, which kdx never writes there; allowed: {allowed}")


class Strict(TypeDecorator[Any]):
    """A type that knows which values its column may hold."""

    column = ""
    """The names of table and column, such as `run.seed`."""
    nullable = False
    allowed = ""
    """The allowed values, in words."""

    def __init_subclass__(cls) -> None:
        # SQLAlchemy asks each class itself for this flag. Two types with the same arguments are in different columns,
        # and so in different statements.
        cls.cache_ok = True

    def check(self, value: Any) -> Any:
        """Converts a value of the database to Python.

        Raises:
            UnexpectedValueError: kdx never writes this value here.
        """
        raise NotImplementedError

    def refuse(self, value: object) -> NoReturn:
        """Raises UnexpectedValueError."""
        raise UnexpectedValueError(self.column, value, self.allowed)

    def result_processor(self, dialect: Dialect, coltype: object) -> Check:
        check, nullable = self.check, self.nullable

        def read(value: Any) -> Any:
            if value is None and nullable:
                return None
            return check(value)

        return read


class Holds(ColumnElement[bool]):
    """SQL for whether a column holds an allowed value, for statements on a single table."""

    inherit_cache = False
    type = Boolean()

    def __init__(self, name: str, kind: Strict) -> None:
        self.name, self.kind = name, kind

    def self_group(self, against: Any = None) -> Any:
        return Grouping(self)


def checked(column: Column[Any], value: Any) -> Any:
    """Checks a value that was not read through the type of its column.

    Raises:
        UnexpectedValueError: the column may not hold it.
    """
    assert isinstance(column.type, Strict)
    return column.type.check(value)


class Whole(Strict):
    """A whole number, from `least` to `most`."""

    impl = BigInteger

    def __init__(self, least: int = 0, most: int = LARGEST, *, small: bool = False) -> None:
        super().__init__()
        self.least, self.most, self.small = least, most, small
        self.allowed = f"a whole number from {least:,} to {most:,}"

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Integer() if self.small else BigInteger())

    def check(self, value: Any) -> Any:
        return value if type(value) is int and self.least <= value <= self.most else self.refuse(value)


class Number(Strict):
    """A number of any kind."""

    impl = Double
    allowed = "a number"

    def check(self, value: Any) -> Any:
        return value if type(value) is float or type(value) is int else self.refuse(value)


class Time(Strict):
    """Seconds since 1970, up to the year 9999."""

    impl = Double
    most = 253402300799
    allowed = "seconds since 1970, before the year 10,000"

    def check(self, value: Any) -> Any:
        return value if type(value) in (float, int) and 0 <= value <= self.most else self.refuse(value)


class ShortText(Strict):
    """A text of at most `most` characters."""

    impl = Text

    def __init__(self, most: int, *, bytewise: bool = False) -> None:
        super().__init__()
        self.most, self.bytewise = most, bytewise
        self.allowed = f"a text of at most {most:,} characters"

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        # Texts sort by bytes on every database, so that a prefix is a range of the key.
        collated = self.bytewise and dialect.name == "postgresql"
        # As it is: some dialects would make a VARCHAR of it.
        return Text(collation="C" if collated else None)

    def check(self, value: Any) -> Any:
        return value if type(value) is str and len(value) <= self.most else self.refuse(value)


class Hash(Strict):
    """A hash of `digits` hexadecimal digits."""

    impl = String

    def __init__(self, digits: int) -> None:
        super().__init__(digits)
        self.digits = digits
        self.allowed = f"{digits} hexadecimal digits"

    def check(self, value: Any) -> Any:
        return (
            value
            if type(value) is str and len(value) == self.digits and not value.strip("0123456789abcdef")
            else self.refuse(value)
        )


class OneWordOf(Strict):
    """One of a few words."""

    impl = String

    def __init__(self, kind: type[StrEnum], *more: str) -> None:
        super().__init__(16)
        self.kind, self.more = kind, more
        self.known: dict[object, str] = {str(word): word for word in (*kind, *more)}
        self.allowed = ", ".join(map(str, self.known))

    def check(self, value: Any) -> Any:
        word = self.known.get(value) if type(value) is str else None
        return word if word is not None else self.refuse(value)


class Flag(Strict):
    """True or false."""

    impl = Boolean
    allowed = "true or false"

    def check(self, value: Any) -> Any:
        return bool(value) if type(value) in (int, bool) and value in (0, 1) else self.refuse(value)


class Packed(Strict):
    """At most `most` bytes."""

    impl = LargeBinary

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.allowed = f"at most {most:,} bytes"

    def check(self, value: Any) -> Any:
        return bytes(value) if isinstance(value, bytes | memoryview) and len(value) <= self.most else self.refuse(value)


class Json(Strict):
    """A JSON object of at most `most` characters for which `form` holds."""

    impl = JSON

    def __init__(self, most: int, form: Callable[[dict[str, Any]], bool], allowed: str) -> None:
        super().__init__(none_as_null=True)
        self.most, self.form, self.allowed = most, form, allowed

    def check(self, value: Any) -> Any:
        if type(value) is not str or len(value) > self.most:
            self.refuse(value)
        try:
            # Python would read NaN and ±Infinity, which are not JSON.
            found = json.loads(value, parse_constant=self.refuse, parse_int=self._whole)
        except (ValueError, RecursionError):
            self.refuse(value)
        if not isinstance(found, dict) or not self.form(found):
            self.refuse(value)
        return found

    def _whole(self, digits: str) -> int:
        # kdx writes no number beyond 64 bits, which nobody who reads its JSON output could be sure to read.
        if len(digits) > len(str(-(2**63))) or not -(2**63) <= int(digits) < 2**63:
            self.refuse(digits)
        return int(digits)

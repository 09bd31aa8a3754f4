"""Writes the rows of a query as text, CSV or JSON, line by line; names are sanitized in each format."""

import csv
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from math import isfinite
from typing import Any

from kdx.sanitize import sanitize, spelled_out

_FORMULA = frozenset("=+-@\t\r")
"""A spreadsheet reads a text that begins with one of these, or with an equivalent character, as a formula."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def word(value: Any) -> str:
    """A value on one line: numbers in full precision, an empty text for NULL."""
    return "" if value is None else sanitize(_text(value))


def to_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Aligned columns under a header, numbers to the right; iterates over the rows twice."""
    widths = [len(sanitize(column)) for column in columns]
    numbers = [True] * len(columns)
    for row in rows:
        for index, value in enumerate(row):
            widths[index] = max(widths[index], len(word(value)))
            numbers[index] &= not isinstance(value, str | bytes)

    def line(words: Iterable[str]) -> str:
        parts = zip(words, widths, numbers, strict=True)
        return "  ".join(text.rjust(width) if number else text.ljust(width) for text, width, number in parts).rstrip()

    yield line(map(sanitize, columns))
    for row in rows:
        yield line(map(word, row))


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A header and a line for each row, as in RFC 4180 except for the line ends; NULL is empty.

    Text is quoted. Text that a spreadsheet would read as a formula gets a `'` before it, as people type it there.
    """
    buffer = StringIO()
    # A quoted text stays one field in a spreadsheet that separates fields by semicolons.
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    for row in chain([columns], rows):
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(map(_field, row))
        yield buffer.getvalue()[:-1]


def to_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """An array with an object for each row. Numbers that are not finite become null; bytes are hexadecimal."""
    before = "["
    for row in rows:
        values = {column: _plain(value) for column, value in zip(columns, row, strict=True)}
        yield f"{before}{json.dumps(values, allow_nan=False)}"
        before = ","
    yield "]" if before == "," else "[]"


def _field(value: Any) -> Any:
    """A number unchanged; text so that no spreadsheet reads it as a formula."""
    if not isinstance(value, str):
        return _text(value) if isinstance(value, bytes) else value
    text = spelled_out(value, keep="\n\t")
    first = unicodedata.normalize("NFKC", text[:1])[:1]
    return f"'{text}" if first in _FORMULA and not _NUMBER.fullmatch(text) else text


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    return value.hex() if isinstance(value, bytes) else value

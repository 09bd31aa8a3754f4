"""Rows of a query as text, CSV or JSON, line by line. Names that they hold come out inert in each."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from math import isfinite
from typing import Any

from kdx.report.inert import inert, spelled_out

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins so for a formula."""


def word(value: Any) -> str:
    """A value on one line: numbers in full precision, nothing for NULL."""
    return "" if value is None else inert(_text(value))


def to_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Aligned columns, numbers to the right, under a header; goes through the rows twice."""
    widths = [len(inert(column)) for column in columns]
    numbers = [True] * len(columns)
    for row in rows:
        for index, value in enumerate(row):
            widths[index] = max(widths[index], len(word(value)))
            numbers[index] &= not isinstance(value, str | bytes)

    def line(words: Iterable[str]) -> str:
        parts = zip(words, widths, numbers, strict=True)
        return "  ".join(text.rjust(width) if number else text.ljust(width) for text, width, number in parts).rstrip()

    yield line(map(inert, columns))
    for row in rows:
        yield line(map(word, row))


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """RFC 4180 but for its line ends: a header, then a line each; NULL is empty.

    A text that a spreadsheet would take for a formula has a `'` before it, as spreadsheets write it themselves.
    """
    buffer = StringIO()
    # Only what its line ends have is quoted.
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain([columns], rows):
        buffer.seek(0)
        buffer.truncate()
        writer.writerow([_cell(value) for value in row])
        yield buffer.getvalue()[:-1]


def to_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """An array with an object for each row. What is not finite, which JSON lacks, is null; bytes are hexadecimal."""
    before = "["
    for row in rows:
        values = {column: _plain(value) for column, value in zip(columns, row, strict=True)}
        yield f"{before}{json.dumps(values, allow_nan=False)}"
        before = ","
    yield "]" if before == "," else "[]"


def _cell(value: Any) -> str:
    if not isinstance(value, str):
        return "" if value is None else _text(value)
    text = spelled_out(value, keep="\n\t")
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    return value.hex() if isinstance(value, bytes) else value

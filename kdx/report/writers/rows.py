"""Writes the rows of a query as text, CSV or JSON, line by line; names are sanitized in each format."""

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from math import isfinite
from typing import Any

from kdx.report.writers.widths import GAP, LINES, Widths, cells, divided, folded, shortened
from kdx.sanitize import sanitize, spelled_out

_FORMULA = frozenset("=+-@\t\r")
"""A spreadsheet reads a text that begins with one of these, or with an equivalent character, as a formula."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def word(value: Any) -> str:
    """A value on one line: numbers in full precision, an empty text for NULL."""
    return "" if value is None else sanitize(_text(value))


def to_text(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    width: int | None = None,
    *,
    spare: Sequence[str] = (),
    paint: Callable[[str], str] = str,
) -> Iterator[str]:
    """Aligned columns under a header, numbers to the right; iterates over the rows twice.

    Args:
        width: of a line; None: as wide as the columns are. Where they are wider, headers take several lines, names
            lose words of their middle, and sentences of the last column stand below their rows.
        spare: columns that are left out where that is not enough, in this order. What is still too wide continues
            below, with its first column repeated.
        paint: adds colour to a text, and changes nothing else.
    """
    heads = [sanitize(column) for column in columns]
    widths = [cells(head) for head in heads]
    numbers = [True] * len(columns)
    for row in rows:
        for index, value in enumerate(row):
            widths[index] = max(widths[index], cells(word(value)))
            numbers[index] &= not isinstance(value, str | bytes)
    if width is not None and sum(widths) + GAP * (len(widths) - 1) > width:
        yield from _narrow(heads, [list(map(word, row)) for row in rows], numbers, width, spare, paint)
        return
    yield _line(heads, widths, numbers, paint)
    for row in rows:
        yield _line(map(word, row), widths, numbers, paint)


def _line(texts: Iterable[str], widths: Sequence[int], numbers: Sequence[bool], paint: Callable[[str], str]) -> str:
    shown = []
    for text, width, number in zip(texts, widths, numbers, strict=True):
        blank = " " * (width - cells(text))
        shown.append(blank + paint(text) if number else paint(text) + blank)
    return (" " * GAP).join(shown).rstrip()


def _narrow(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[bool],
    width: int,
    spare: Sequence[str],
    paint: Callable[[str], str],
) -> Iterator[str]:
    last, below = len(heads) - 1, False
    optional = [heads.index(name) for name in spare if name in heads]
    columns = [
        _column(head, [row[at] for row in rows], whole=numbers[at] or at == last) for at, head in enumerate(heads)
    ]

    def pieces(shown: Sequence[int]) -> list[dict[int, int]]:
        return divided([columns[at] for at in shown], 1, width)

    every = range(len(heads))
    choices = [[at for at in every if at not in optional[:count]] for count in range(len(optional) + 1)]
    shown = next((shown for shown in choices if len(pieces(shown)) == 1), None)
    if shown is None:
        if below := bool(last) and any(" " in row[last] for row in rows):
            choices = [[at for at in shown if at != last] for shown in choices]
        shown = next((shown for shown in choices if len(pieces(shown)) == 1), choices[-1])
    for number, piece in enumerate(pieces(shown)):
        if number:
            yield ""
        at, widths = [shown[index] for index in piece], [*piece.values()]
        right = [numbers[index] for index in at]
        folds = [_folded(heads[index], width) for index, width in zip(at, widths, strict=True)]
        levels = max(map(len, folds))
        for level in zip(*([""] * (levels - len(fold)) + fold for fold in folds), strict=True):
            yield _line(level, widths, right, paint)
        for row in rows:
            texts = map(shortened, (row[index] for index in at), widths)
            yield _line(texts, widths, right, paint)
            if below and not number and row[last]:
                name = f"{heads[last]}: " if heads[last] else ""
                yield from folded(f"    {name}{row[last]}", width)


def _column(head: str, texts: Sequence[str], *, whole: bool) -> Widths:
    """Measure a column; its texts, unless they are to stay whole, may lose words, but neither half nor what tells them
    apart."""
    distinct = set(texts)
    most = max(map(cells, distinct), default=0)
    least = most if whole else -(-most // LINES)
    while least < most:
        shorter = {shortened(text, least) for text in distinct}
        if len(shorter) == len(distinct) and max(map(cells, shorter)) <= least:
            break
        least += 1
    least = max(least, *map(cells, head.split()), 1)
    return least, max(least, most, cells(head))


def _folded(head: str, width: int) -> list[str]:
    """The lines of a header, none of which is wider than its widest word or than the column."""
    lines = [""]
    for each in head.split():
        joined = f"{lines[-1]} {each}".strip()
        if cells(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(each)
    return [line for line in lines if line] or [""]


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

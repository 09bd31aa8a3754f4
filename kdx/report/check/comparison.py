"""Compares a table in a file with what kdx writes of it now, token by token.

A place where both differ is a change, except that a paper may leave out captions, notes and further tables, write its
own, and have any text around: a caption or a note of which no more than half of the words are left is the author's own.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import chain, groupby
from math import isclose
from typing import Any, NamedTuple

from kdx.report.check.documents import FoundTable, heads
from kdx.report.table.layout import Layout
from kdx.report.trace import columns, rows
from kdx.report.wording import LEVELS

_NOT_THERE = "not there"
_ROUNDING = 1e-9
"""Relative tolerance of numbers in JSON: another processor or library may sum in another order."""
_LONGEST = 90
"""Number of letters of a text that are shown."""
_MOST = 3_000_000
"""Pairs of equal tokens above which a stretch of a file counts as rewritten, so that no comparison takes minutes."""
_COLUMNS = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_TOKEN = {
    "latex": re.compile(
        r"(?<!\\)%.*|\\allowbreak\{\}|\\(?:top|mid|bottom)rule\b|\\hline\b|\\addlinespace\b|\\cmidrule\([lr]*\)\{[^}]*\}"
        rf"|\\begin\{{(?:tabular[x*]?|longtable)\}}(?:\{{[^{{}}]*\}}(?=\{{))?{_COLUMNS}"
        r"|\\end\{(?:tabular[x*]?|longtable)\}|\\label\{[^}]*\}|\\par\b"
        r"|(\\[A-Za-z]+|\\.|[^\W_]+(?:[.,]\d+)*|\S)"
    ),
    "markdown": re.compile(r"<!--.*?-->|(:?-{3,}:?|\\.|[^\W_]+(?:[.,]\d+)*|\S)"),
    # A repeated run has another id.
    "json": re.compile(
        r'"run(?:_id)?":\s*(?:\d+|null)\b,?|"made_by":\s*"(?:[^"\\]|\\.)*",|("(?:[^"\\]|\\.)*":|-?\d[\d.eE+-]*|\\.|\w+|\S)'
    ),
}
"""Format → what is skipped, or a token as its first group."""
_RULE = re.compile(r"\\midrule|\| :?-")
"""What stands between the head of a table and its rows."""
_REPEATED = re.compile(r"(?s)\\endfirsthead.*?\\endlastfoot")
"""The head and foot of the further pages of a longtable."""
_ACROSS = re.compile(r"\\multicolumn\{(\d+)\}")


class Kind(StrEnum):
    """What a part of a table is."""

    ROWS = "rows"
    CAPTION = "caption"
    NOTE = "note"
    LAYOUT = "layout"
    """What only places the others, which an author may change at will."""


@dataclass(frozen=True)
class Change:
    """A place in which a file differs from what kdx writes now."""

    table: str
    path: str
    line: int
    column: int
    place: str
    """Row and column of the table, such as `rbf, perplexity ↓`; empty where it is no place of the table."""
    kind: Kind
    key: str
    """The key in JSON, such as `mean`; else empty."""
    was: str
    """The text in the file."""
    now: str
    """The text by the database."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing one table of a file."""

    numbers: int
    """Numbers compared."""
    changes: tuple[Change, ...] = ()
    own: tuple[str, ...] = ()
    """Captions and notes in whose place the file has words of its own."""
    left_out: tuple[str, ...] = ()
    """What of the table in the file was not compared."""


class _Token(NamedTuple):
    text: str
    at: int
    line: int
    unit: int = 0
    """Number of the unit that it belongs to, in the text of now."""


@dataclass
class _Unit:
    """A caption, a note, or the rows between two of them, as kdx writes it now."""

    kind: Kind
    text: str
    words: int = 0
    kept: int = 0
    """Words that the file has too."""

    @property
    def is_own(self) -> bool:
        """Whether the file has something else in its place, or nothing; all numbers of rows may have changed."""
        return (4 if self.kind is Kind.ROWS else 2) * self.kept <= self.words


def compare(table: FoundTable, now: str, layout: Layout) -> Comparison:
    """Compare a table in a file with the text that kdx writes of it now, with all that belongs to it."""
    document, format = table.document, table.document.format
    places = [*(_places_in_json(now) if format == "json" else _places_in_text(now, layout))]
    units, expected = _expected(now, format)
    tokens = _tokens(document.text, format, table.start, table.end)
    hunks = [*_hunks(expected, tokens)]
    unequal = {index for first, last, *_ in hunks for index in range(first, last)}
    for index, token in enumerate(expected):
        if token.text.isalnum() or len(token.text) > 1:
            units[token.unit].words += 1
            units[token.unit].kept += index not in unequal
    changes: list[Change] = []
    for first, last, start, end in hunks:
        was = _text(document.text, tokens[start:end])
        at = tokens[min(start, len(tokens) - 1)].at if tokens else table.start
        for unit, changed in _by_unit(expected, units, first, last, was):
            if not unit.is_own and unit.kind is not Kind.LAYOUT:
                key = _key(expected, first) if format == "json" else ""
                texts = (_shortened(text) or _NOT_THERE for text in (was, _text(now, changed)))
                place = next((name for start, end, name in places if changed and start <= changed[0].at < end), "")
                changes.append(
                    Change(table.name, str(document.path), *document.place(at), place, unit.kind, key, *texts)
                )
                was = ""
    # Units beside which, or in whose place, the file has something else.
    replaced = {
        token.unit
        for first, last, start, end in hunks
        if start < end
        for token in expected[max(first - 1, 0) : last + 1]
    }
    rows = [unit for unit in units if unit.kind is Kind.ROWS and unit.words]
    left_out = [f"{table.name}: most of its rows have changed"] if not rows or rows[0].is_own else []
    listings = heads(format, table.name)
    known = {head[0] for head in listings.finditer(now)}
    left_out += [
        f"{head[0]}: there is no such listing now"
        for head in listings.finditer(document.text, table.start, table.end)
        if head[1] is not None and head[0] not in known
    ]
    return Comparison(
        numbers=sum(not units[token.unit].is_own and token.text[-1:].isdecimal() for token in expected),
        changes=tuple(sorted(changes, key=lambda change: (change.line, change.column))),
        own=tuple(
            f"{unit.kind} `{_shortened(unit.text)}`"
            for index, unit in enumerate(units)
            if unit.is_own and index in replaced and unit.kind in (Kind.CAPTION, Kind.NOTE)
        ),
        left_out=tuple(left_out),
    )


def _expected(now: str, format: str) -> tuple[list[_Unit], list[_Token]]:
    """The parts of what kdx writes now, and their tokens."""
    units: list[_Unit] = []
    tokens: list[_Token] = []
    last: Kind | None = None
    at, in_rows = 0, False
    for line in now.split("\n"):
        kind = _kind(format, line, in_rows) if line else Kind.LAYOUT
        if kind is not last or kind is not Kind.ROWS:
            units.append(_Unit(kind, line))
        tokens += [token._replace(unit=len(units) - 1) for token in _tokens(now, format, at, at + len(line))]
        in_rows = (in_rows or kind is Kind.ROWS) and not line.startswith("\\end{")
        last = kind if in_rows or format != "latex" else None
        at += len(line) + 1
    return units, tokens


def _kind(format: str, line: str, in_rows: bool) -> Kind:
    """The kind of a line that kdx writes, given whether the line before is in rows."""
    if format == "json":
        return Kind.ROWS
    if format == "markdown":
        return Kind.ROWS if line.startswith("|") else Kind.CAPTION if line.startswith("**") else Kind.NOTE
    if line.startswith("\\caption["):
        return Kind.CAPTION
    if line.startswith(("\\begin{tabular}", "\\begin{longtable}")) or in_rows:
        return Kind.ROWS
    return Kind.NOTE if line.endswith("\\par") and not line.startswith("\\par") else Kind.LAYOUT


def _tokens(text: str, format: str, start: int, end: int) -> list[_Token]:
    tokens: list[_Token] = []
    line, counted = 0, start
    for token in _TOKEN[format].finditer(text, start, end):
        if token[1] is not None:
            line += text.count("\n", counted, token.start())
            counted = token.start()
            tokens.append(_Token(token[1], token.start(1), line))
    return tokens


Hunk = tuple[int, int, int, int]
"""First and last (exclusive) of the tokens of now, and of those in the file, that stand for each other and differ."""


def _hunks(now: Sequence[_Token], then: Sequence[_Token]) -> Iterator[Hunk]:
    """The stretches in which two texts differ: line by line first, then token by token."""
    lines = [
        [list(line) for _, line in groupby(side, key=lambda token: (token.unit, token.line))] for side in (now, then)
    ]
    texts = [[tuple(token.text for token in line) for line in side] for side in lines]
    for first, last, start, end in _opcodes(*texts):
        first_now, first_then = (sum(map(len, side[:at])) for side, at in zip(lines, (first, start), strict=True))
        hunk_now, hunk_then = (
            [*chain(*side[a:b])] for side, a, b in zip(texts, (first, start), (last, end), strict=True)
        )
        for i1, i2, j1, j2 in _opcodes(hunk_now, hunk_then):
            if i2 - i1 != j2 - j1:
                yield first_now + i1, first_now + i2, first_then + j1, first_then + j2
                continue
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                if not _equal(hunk_now[i], hunk_then[j]):
                    yield first_now + i, first_now + i + 1, first_then + j, first_then + j + 1


def _opcodes(now: Sequence[Any], then: Sequence[Any]) -> Iterator[Hunk]:
    """The stretches in which two sequences differ."""
    begin = next((at for at, (mine, other) in enumerate(zip(now, then, strict=False)) if mine != other), None)
    begin = min(len(now), len(then)) if begin is None else begin
    now, then = now[begin:], then[begin:]
    # Not so of single tokens: the full stop of another sentence is no common end.
    while now and then and now[-1] == then[-1] and not isinstance(now[-1], str):
        now, then = now[:-1], then[:-1]
    counts = Counter(then)
    if len(now) == len(then):
        # Nothing came or went.
        hunks = [(at, at + 1, at, at + 1) for at in range(len(now)) if now[at] != then[at]]
    elif sum(counts[mine] for mine in now) > _MOST:
        hunks = [(0, len(now), 0, len(then))]
    else:
        codes = SequenceMatcher(None, now, then, autojunk=False).get_opcodes()
        hunks = [(first, last, start, end) for name, first, last, start, end in codes if name != "equal"]
    return ((begin + first, begin + last, begin + start, begin + end) for first, last, start, end in hunks)


def _by_unit(
    now: Sequence[_Token], units: Sequence[_Unit], first: int, last: int, was: str
) -> Iterator[tuple[_Unit, Sequence[_Token]]]:
    """The tokens of a hunk with the unit of each; of one that only the file has, the unit that it stands in.

    What stands between two units is an author's own, unless it is one more row.
    """
    if first < last:
        for unit, tokens in groupby(now[first:last], key=lambda token: token.unit):
            yield units[unit], list(tokens)
        return
    around = [now[at].unit for at in (first - 1, first) if 0 <= at < len(now)]
    if len(around) == 2 and around[0] == around[1]:
        yield units[around[0]], ()
    elif was.startswith("|") or "&" in was:
        yield from ((units[unit], ()) for unit in around[:1] if units[unit].kind is Kind.ROWS)


def _equal(now: str, then: str) -> bool:
    """Whether two tokens are the same, or the same number but for rounding."""
    if now == then:
        return True
    try:
        return ("." in now or "e" in now) and isclose(float(now), float(then), rel_tol=_ROUNDING)
    except ValueError:
        return False


def _key(tokens: Sequence[_Token], at: int) -> str:
    """The key before a value in JSON."""
    keys = (token.text for token in reversed(tokens[: at + 1]) if token.text.endswith('":'))
    return next(keys, "").strip('":')


def _text(text: str, tokens: Sequence[_Token]) -> str:
    return text[tokens[0].at : tokens[-1].at + len(tokens[-1].text)] if tokens else ""


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_Span = tuple[int, int, str]
"""Start and end in the text, and the row and column, such as `rbf, perplexity ↓`."""


def _places_in_json(text: str) -> Iterator[_Span]:
    """The objects of a table that are about one place, innermost first."""
    decoder = json.JSONDecoder()
    for match in reversed([*re.finditer(r'\{\s*"row": ', text)]):
        about, end = decoder.raw_decode(text, match.start())
        headers = (LEVELS.join(map(str, about[side].values())) for side in ("row", "column"))
        yield match.start(), end, ", ".join(filter(None, headers))


def _places_in_text(text: str, layout: Layout) -> Iterator[_Span]:
    """The places of a table of scores, which may continue below, in LaTeX or Markdown."""
    text = _REPEATED.sub(lambda match: " " * len(match[0]), text)
    names, headers, shown = len(layout.row_factors), columns(layout), 0
    head: list[int] = []
    left: Iterator[str] = iter(())
    before = row = ""
    for line in re.finditer(".+", text):
        if _RULE.match(line[0]):
            if shown >= len(headers):
                return  # what follows is a listing
            head = [at - names + shown for at, part in enumerate(_columns_of(before)) for _ in range(_across(part))]
            left, shown = iter(rows(layout)), head[-1] + 1
        elif head and len(parts := _columns_of(line[0])) > 1:
            # A line without a name says more about the row above it.
            row = next(left, "") if any(parts[:names]) else row
            start, column = line.start(), 0
            for part in parts if row else ():
                is_name = column < names or column >= len(head)
                yield start, start + len(part), row if is_name else f"{row}, {headers[head[column]]}"
                start, column = start + len(part) + len(" & "), column + _across(part)
        before = line[0]


def _columns_of(line: str) -> list[str]:
    return re.split(" [&|] ", line)


def _across(part: str) -> int:
    """The columns that a part of a line spans."""
    across = _ACROSS.match(part)
    return int(across[1]) if across else 1

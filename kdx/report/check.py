"""Compares the tables in a file that kdx wrote with what kdx writes of them now, token by token.

A table is found by the command that made it, which stands before it in a comment (LaTeX, Markdown) or under a key
(JSON); where an author took the comment out, by its label (LaTeX) or its title in bold type (Markdown). A place where
both differ is a change, except that a paper may leave out captions, notes and further tables, write its own, and have
any text around: a caption or a note of which no more than half of the words are left is the author's own.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import chain, groupby
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

from kdx.errors import KdxError
from kdx.files import read_file
from kdx.report.made_by import MadeBy
from kdx.report.places import places_in_json, places_in_text
from kdx.report.table.layout import Layout
from kdx.report.writers.latex import label
from kdx.report.writers.markdown import plain

LARGEST = 100_000_000
"""Largest file that is checked, in bytes."""
_NOT_THERE = "not there"
_ROUNDING = 1e-9
"""Relative tolerance of numbers in JSON: another processor or library may sum in another order."""
_LONGEST = 90
"""Number of letters of a text that are shown."""
_MOST = 3_000_000
"""Pairs of equal tokens above which a stretch of a file counts as rewritten, so that no comparison takes minutes."""
_INPUT = re.compile(
    r"(?<!\\)%.*|\\(?:input|include|subfile|subfileinclude)\s*\{(?P<file>[^{}\n]+)\}"
    r"|\\input\s+(?P<bare>[^\s{}\\%]+)|\\(?:sub)?(?:import|includefrom|inputfrom)\*?\{(?P<folder>[^{}\n]*)\}\{(?P<of>[^{}\n]+)\}"
)
"""A comment, or a command with the file that it inputs."""
_OF_TEX = {"glyphtounicode"}
"""What papers input that comes with TeX."""
_LABEL = re.compile(r"(?<!\\)%.*|\\label\{(tab:[^{}\n]+)\}")
"""A comment, or the label of a table."""
_BEGIN = re.compile(r"\\begin\{(?:(?:sideways)?table\*?|longtable|landscape)\}|\\begingroup")
_END = re.compile(r"\\end\{(?:(?:sideways)?table\*?|longtable|landscape)\}|\\endgroup")
_COLUMNS = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"


class Kind(StrEnum):
    """What a part of a table is."""

    ROWS = "rows"
    CAPTION = "caption"
    NOTE = "note"
    LAYOUT = "layout"
    """What only places the others, which an author may change at will."""


@dataclass(frozen=True)
class _Form:
    """How a format is read."""

    comment: re.Pattern[str]
    """A command that made a table, as its first group."""
    token: re.Pattern[str]
    """What is skipped, or a token as its first group."""
    kind: Callable[[str, bool], Kind]
    """The kind of a line that kdx writes, given whether the line before is in rows."""
    heads: Callable[[str], re.Pattern[str]]
    """The label or title of the table of this name, and those of its listings, of which the first group is the rest."""

    def headed(self, text: str, name: str, start: int = 0) -> list[int]:
        """The places from `start` on of the label or title of a table."""
        return [head.start() for head in self.heads(name).finditer(text, start) if head[1] is None]

    def listings(self, text: str, name: str, start: int, end: int) -> list[str]:
        """The labels or titles of the listings of a table."""
        return [head[0] for head in self.heads(name).finditer(text, start, end) if head[1] is not None]


def _kind_in_latex(line: str, in_rows: bool) -> Kind:
    if line.startswith("\\caption["):
        return Kind.CAPTION
    if line.startswith(("\\begin{tabular}", "\\begin{longtable}")) or in_rows:
        return Kind.ROWS
    return Kind.NOTE if line.endswith("\\par") and not line.startswith("\\par") else Kind.LAYOUT


def _kind_in_markdown(line: str, in_rows: bool) -> Kind:
    return Kind.ROWS if line.startswith("|") else Kind.CAPTION if line.startswith("**") else Kind.NOTE


_LATEX = _Form(
    comment=re.compile(r"^%\s*(kdx report .*)$", re.MULTILINE),
    token=re.compile(
        r"(?<!\\)%.*|\\allowbreak\{\}|\\(?:top|mid|bottom)rule\b|\\hline\b|\\addlinespace\b|\\cmidrule\([lr]*\)\{[^}]*\}"
        rf"|\\begin\{{(?:tabular[x*]?|longtable)\}}(?:\{{[^{{}}]*\}}(?=\{{))?{_COLUMNS}"
        r"|\\end\{(?:tabular[x*]?|longtable)\}|\\label\{[^}]*\}|\\par\b"
        r"|(\\[A-Za-z]+|\\.|[^\W_]+(?:[.,]\d+)*|\S)"
    ),
    kind=_kind_in_latex,
    heads=lambda name: re.compile(rf"\\label\{{{re.escape(label(name))}(:[^}}]*)?\}}"),
)
_MARKDOWN = _Form(
    comment=re.compile(r"^<!--\s*(kdx report .*?)\s*-->$", re.MULTILINE),
    token=re.compile(r"<!--.*?-->|(:?-{3,}:?|\\.|[^\W_]+(?:[.,]\d+)*|\S)"),
    kind=_kind_in_markdown,
    # What all rows have in common follows a comma.
    heads=lambda name: re.compile(rf"^\*\*{re.escape(plain(name))}(?:\*\*|(: [^,*\n]*))", re.MULTILINE),
)
_JSON = _Form(
    comment=re.compile(r'"made_by":\s*("(?:[^"\\]|\\.)*"),'),
    # A repeated run has another id.
    token=re.compile(
        r'"run(?:_id)?":\s*(?:\d+|null)\b,?|"made_by":\s*"(?:[^"\\]|\\.)*",|("(?:[^"\\]|\\.)*":|-?\d[\d.eE+-]*|\\.|\w+|\S)'
    ),
    kind=lambda line, in_rows: Kind.ROWS,
    heads=lambda name: re.compile(r"(?!)()"),
)
FORMS = {".json": _JSON, ".md": _MARKDOWN, ".markdown": _MARKDOWN, ".tex": _LATEX}


class Document(NamedTuple):
    """A file, or one that a paper inputs."""

    path: Path
    text: str
    folder: Path = Path()
    """The folder of the paper that reads it."""

    @property
    def suffix(self) -> str:
        """The suffix of its format; what a paper inputs is LaTeX, whatever its name."""
        suffix = self.path.suffix.lower()
        return suffix if suffix in FORMS else ".tex"

    @property
    def form(self) -> _Form:
        return FORMS[self.suffix]

    @property
    def inputs(self) -> Iterator[tuple[int, str, Path | None]]:
        """What it inputs: the place of the command, the name, and the file if there is one."""
        for command in _INPUT.finditer(self.text) if self.form is _LATEX else ():
            if name := (command["file"] or command["bare"] or command["of"] or "").strip(' "'):
                name = str(Path(command["folder"] or "", name))
                folders = dict.fromkeys((self.folder, self.path.parent))
                files = (folder / f"{name}{suffix}" for folder in folders for suffix in (".tex", ""))
                yield command.start(), name, next((file for file in files if file.is_file()), None)

    def place(self, at: int) -> tuple[int, int]:
        """Line and column, from 1."""
        return self.text.count("\n", 0, at) + 1, at - self.text.rfind("\n", 0, at)

    def shown(self, at: int) -> str:
        """A place as messages show it."""
        return "{}:{}:{}".format(self.path, *self.place(at))


class FoundTable(NamedTuple):
    """A table in a file."""

    document: Document
    made_by: MadeBy | None
    """None where no comment says it."""
    name: str
    start: int
    end: int
    """The place where the next table begins, or the file ends."""

    @property
    def place(self) -> str:
        return self.document.shown(self.start)


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


def documents(path: Path) -> tuple[Document, ...]:
    """A file; and of a paper in LaTeX each file that it inputs from its folder, or from below.

    Raises:
        KdxError: the file cannot be read.
    """
    documents: dict[Path, Document] = {}
    waiting = [path]
    while waiting:
        document = Document(waiting[0], _read(waiting.pop(0)), path.parent)
        documents[document.path.resolve()] = document
        waiting += [
            file
            for _, _, file in document.inputs
            if file and _is_below(file, path.parent) and file.resolve() not in {*documents, *map(Path.resolve, waiting)}
        ]
    return tuple(documents.values())


def _is_below(file: Path, folder: Path) -> bool:
    return file.resolve().is_relative_to(folder.resolve())


def _read(path: Path) -> str:
    try:
        # Another system may have converted the line ends.
        return read_file(path, LARGEST).decode().replace("\r\n", "\n")
    except OSError as error:
        raise KdxError(f"cannot read this file: {error.strerror}", place=str(path)) from error
    except UnicodeDecodeError as error:
        raise KdxError("this file is not UTF-8", place=str(path)) from error


def unread(files: Sequence[Document]) -> tuple[list[str], list[str]]:
    """What a paper inputs and kdx does not read, each with its place: what is elsewhere; and what does not exist."""
    elsewhere, absent = [], []
    for document in files:
        for at, name, file in document.inputs:
            place = document.shown(at)
            if set("\\#") & set(name):
                elsewhere.append(f"{place}: {name} is named by a macro, and not checked")
            elif file and not _is_below(file, document.folder):
                elsewhere.append(f"{place}: {name} is not in the folder of the paper, and not checked")
            elif file is None and name not in _OF_TEX:
                absent.append(f"{place}: {name} does not exist")
    return elsewhere, absent


def not_of_kdx(files: Sequence[Document], names: Collection[str]) -> list[str]:
    """The labels of tables in LaTeX that no sweep has, each with its place.

    Args:
        names: every table that is known, or is in a file.
    """
    known = re.compile("|".join(_LATEX.heads(name).pattern for name in names)) if names else None
    return [
        f"{document.shown(match.start())}: no sweep has a table {match[1]}, so it is not checked"
        for document in files
        if document.form is _LATEX
        for match in _LABEL.finditer(document.text)
        if match[1] and not (known and known.fullmatch(match[0]))
    ]


def find_tables(files: Sequence[Document], names: Sequence[str]) -> list[FoundTable]:
    """The tables of kdx in some files, in their order.

    Args:
        names: names of tables that are looked for without a comment too.
    """
    return [table for document in files for table in _tables_in(document, names)]


def _tables_in(document: Document, names: Sequence[str]) -> Iterator[FoundTable]:
    form, text = document.form, document.text
    if form is _JSON:
        _decoded(document, json.loads)
    starts: dict[int, tuple[MadeBy | None, str]] = {}
    headed = {name: form.headed(text, name) for name in names}
    for comment in form.comment.finditer(text):
        made_by = MadeBy.read(json.loads(comment[1]) if form is _JSON else comment[1])
        if made_by and made_by.table:
            starts[comment.start()] = made_by, made_by.table
            # The first label or title behind it is that of this table.
            for head in form.headed(text, made_by.table, comment.end())[:1]:
                headed[made_by.table] = [at for at in headed.get(made_by.table, []) if at != head]
    for name, places in headed.items():
        starts |= {_start(text, at) if form is _LATEX else at: (None, name) for at in places}
    ordered = sorted(starts)
    for start, end in zip(ordered, [*ordered[1:], len(text)], strict=False):
        if form is _JSON:
            yield FoundTable(document, *starts[start], *_object_around(document, start))
        else:
            yield FoundTable(document, *starts[start], start, end)


def _object_around(document: Document, at: int) -> tuple[int, int]:
    """The start and the end of the JSON object whose first key stands here."""
    start = document.text.rindex("{", 0, at)
    return start, _decoded(document, lambda text: json.JSONDecoder().raw_decode(text, start))[1]


def _decoded(document: Document, decode: Callable[[str], Any]) -> Any:
    try:
        return decode(document.text)
    except (ValueError, RecursionError) as error:
        why, at = (error.msg, error.pos) if isinstance(error, json.JSONDecodeError) else (str(error), 0)
        raise KdxError(
            f"this is no JSON: {why}",
            place=document.shown(at),
            hint="kdx report --json > FILE.json writes one",
        ) from error


def _start(text: str, label_at: int) -> int:
    """The start of the environment around a label."""
    ended = max((end.end() for end in _END.finditer(text, 0, label_at)), default=0)
    begin = _BEGIN.search(text, ended, label_at)
    return begin.start() if begin else text.rfind("\n", 0, label_at) + 1


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
    document, form = table.document, table.document.form
    places = [*(places_in_json(now) if form is _JSON else places_in_text(now, layout))]
    units, expected = _expected(now, form)
    tokens = _tokens(document.text, form, table.start, table.end)
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
                key = _key(expected, first) if form is _JSON else ""
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
    left_out = [f"{table.name}: most of its rows are others now"] if not rows or rows[0].is_own else []
    known = form.listings(now, table.name, 0, len(now))
    in_file = form.listings(document.text, table.name, table.start, table.end)
    left_out += [f"{head}: there is no such listing now" for head in in_file if head not in known]
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


def _expected(now: str, form: _Form) -> tuple[list[_Unit], list[_Token]]:
    """The parts of what kdx writes now, and their tokens."""
    units: list[_Unit] = []
    tokens: list[_Token] = []
    last: Kind | None = None
    at, in_rows = 0, False
    for line in now.split("\n"):
        kind = form.kind(line, in_rows) if line else Kind.LAYOUT
        if kind is not last or kind is not Kind.ROWS:
            units.append(_Unit(kind, line))
        tokens += [token._replace(unit=len(units) - 1) for token in _tokens(now, form, at, at + len(line))]
        in_rows = (in_rows or kind is Kind.ROWS) and not line.startswith("\\end{")
        last = kind if in_rows or form is not _LATEX else None
        at += len(line) + 1
    return units, tokens


def _tokens(text: str, form: _Form, start: int, end: int) -> list[_Token]:
    tokens: list[_Token] = []
    line, counted = 0, start
    for token in form.token.finditer(text, start, end):
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

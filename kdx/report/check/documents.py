"""Finds the tables of kdx in files, and in those that a paper inputs.

A table is found by the command that made it, which stands before it in a comment (LaTeX, Markdown) or under a key
(JSON); where an author took the comment out, by its label (LaTeX) or its title in bold type (Markdown).
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kdx.errors import KdxError
from kdx.files import read_file
from kdx.report.made_by import MadeBy
from kdx.report.writers.latex import label
from kdx.report.writers.markdown import plain

LARGEST = 100_000_000
"""Largest file that is checked, in bytes."""
FORMATS = {".json": "json", ".md": "markdown", ".markdown": "markdown", ".tex": "latex"}
"""Suffix of a file → the format of its tables."""
_COMMENT = {
    "json": re.compile(r'"made_by":\s*("(?:[^"\\]|\\.)*"),'),
    "markdown": re.compile(r"^<!--\s*(kdx report .*?)\s*-->$", re.MULTILINE),
    "latex": re.compile(r"^%\s*(kdx report .*)$", re.MULTILINE),
}
"""Format → the command that made a table, as its first group."""
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


class Document(NamedTuple):
    """A file, or one that a paper inputs."""

    path: Path
    text: str
    folder: Path = Path()
    """The folder of the paper that reads it."""

    @property
    def format(self) -> str:
        """The format of its tables; what a paper inputs is LaTeX, whatever its name."""
        return FORMATS.get(self.path.suffix.lower(), "latex")

    @property
    def inputs(self) -> Iterator[tuple[int, str, Path | None]]:
        """What it inputs: the place of the command, the name, and the file if there is one."""
        for command in _INPUT.finditer(self.text) if self.format == "latex" else ():
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
    known = re.compile("|".join(heads("latex", name).pattern for name in names)) if names else None
    return [
        f"{document.shown(match.start())}: no sweep has a table {match[1]}, so it is not checked"
        for document in files
        if document.format == "latex"
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
    format, text = document.format, document.text
    is_json = format == "json"
    if is_json:
        _decoded(document, json.loads)
    starts: dict[int, tuple[MadeBy | None, str]] = {}
    headed = {name: _headed(document, name) for name in names}
    for comment in _COMMENT[format].finditer(text):
        made_by = MadeBy.read(json.loads(comment[1]) if is_json else comment[1])
        if made_by and made_by.table:
            starts[comment.start()] = made_by, made_by.table
            # The first label or title behind it is that of this table.
            for head in _headed(document, made_by.table, comment.end())[:1]:
                headed[made_by.table] = [at for at in headed.get(made_by.table, []) if at != head]
    for name, places in headed.items():
        starts |= {_start(text, at) if format == "latex" else at: (None, name) for at in places}
    ordered = sorted(starts)
    for start, end in zip(ordered, [*ordered[1:], len(text)], strict=False):
        made_by, name = starts[start]
        if is_json:
            # The object whose first key stands here.
            start = text.rindex("{", 0, start)
            _, end = _decoded(document, partial(json.JSONDecoder().raw_decode, idx=start))
        yield FoundTable(document, made_by, name, start, end)


def heads(format: str, name: str) -> re.Pattern[str]:
    """The label or title of the table of this name, and those of its listings, of which the first group is the rest."""
    if format == "latex":
        return re.compile(rf"\\label\{{{re.escape(label(name))}(:[^}}]*)?\}}")
    if format == "markdown":
        # What all rows have in common follows a comma.
        return re.compile(rf"^\*\*{re.escape(plain(name))}(?:\*\*|(: [^,*\n]*))", re.MULTILINE)
    return re.compile(r"(?!)()")


def _headed(document: Document, name: str, start: int = 0) -> list[int]:
    """The places from `start` on of the label or title of a table."""
    return [head.start() for head in heads(document.format, name).finditer(document.text, start) if head[1] is None]


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

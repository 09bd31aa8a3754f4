"""The formats of files that can be checked: how kdx writes and reads each."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.errors import KdxError
from kdx.files import read_file
from kdx.report.check.json_parts import parts_of_json
from kdx.report.check.latex_parts import parts_of_latex
from kdx.report.check.markdown_parts import parts_of_markdown
from kdx.report.check.parts import Part
from kdx.report.table.table import Table
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import label, to_latex
from kdx.report.writers.markdown import plain, to_markdown
from kdx.report.writers.tex import tex

_INPUT = re.compile(r"(?<!\\)%.*|\\(?:input|include)\{([^{}\n]+)\}")
"""A comment, or a command with the file that it inputs."""
LARGEST = 100_000_000
"""Largest file that is checked, in bytes."""


@dataclass(frozen=True)
class Form:
    """A format that shows tables."""

    write: Callable[[Table, bool], str]
    """Writes a table with its statistics, and with short or full notes."""
    parts: Callable[[str], Iterator[Part]]
    """Reads the parts of a text; the first part that is written of a table is the table itself."""
    belonging: Callable[[str], str]
    """The beginning of the titles of a table's listings, from the name of the table."""
    names: Callable[[str, str], bool]
    """Whether a text has a table of this name, in whatever shape."""
    heads: Callable[[str, str], bool]
    """Whether the title of a part is that of the table of this name."""
    title: Callable[[Table], tuple[str, str]]
    """The name and the caption in a table's title."""
    plain: Callable[[str], str] = str
    """Escapes a name."""
    paragraphs: Callable[[Sequence[str]], list[str]] = list
    """Divides the notes of a listing into paragraphs."""


JSON = Form(
    write=lambda table, full: json.dumps({"tables": [to_json(table)]}),
    parts=parts_of_json,
    belonging=lambda name: f"{name}: ",
    names=lambda name, text: False,
    heads=lambda name, title: name == title,
    title=lambda table: (table.layout.name, ""),
)
_MARKDOWN = Form(
    write=lambda table, full: to_markdown(table, statistics=True, full=full),
    parts=parts_of_markdown,
    belonging=lambda name: f"**{plain(name)}: ",
    names=lambda name, text: f"**{plain(name)}**" in text,
    heads=lambda name, title: title.startswith(f"**{plain(name)}**"),
    title=lambda table: (f"**{plain(table.layout.name)}**", plain(table.layout.caption)),
    plain=plain,
    paragraphs=lambda notes: [" ".join(notes)],
)
_LATEX = Form(
    write=lambda table, full: to_latex(table, statistics=True, full=full),
    parts=parts_of_latex,
    belonging=lambda name: f"{label(name)}:",
    names=lambda name, text: f"\\label{{{label(name)}}}" in text,
    heads=lambda name, title: title == label(name),
    title=lambda table: (f"\\textbf{{{tex(table.layout.name)}}}", tex(table.layout.caption)),
    plain=tex,
)
_FORMS = {".json": JSON, ".md": _MARKDOWN, ".markdown": _MARKDOWN, ".tex": _LATEX}


def form_of(path: Path) -> Form:
    """The format of a file, by its suffix."""
    if path.suffix.lower() not in _FORMS:
        raise KdxError(
            f"kdx cannot compare a file named `{path.name}`",
            place=str(path),
            allowed="FILE.json of kdx report --json, or FILE.md or FILE.tex with tables of kdx report --format",
        )
    return _FORMS[path.suffix.lower()]


def read_text(path: Path) -> str:
    """Return a file's text. In LaTeX, each file that it inputs from its folder, or from below, is read in its place."""
    if path.suffix.lower() != ".tex":
        return _read(path)
    folder, seen = path.parent.resolve(), {path.resolve()}

    def contents(command: re.Match[str]) -> str:
        if command[1] is None:
            return command[0]
        file = (folder / command[1]).resolve()
        file = file if file.suffix == ".tex" else file.with_name(f"{file.name}.tex")
        if file in seen or not file.is_relative_to(folder) or not file.is_file():
            return command[0]
        seen.add(file)
        return _INPUT.sub(contents, _read(file))

    return _INPUT.sub(contents, _read(path))


def not_read(text: str) -> list[str]:
    """The files that a text in LaTeX inputs from elsewhere, or that are not there."""
    return [command[1] for command in _INPUT.finditer(text) if command[1]]


def _read(path: Path) -> str:
    try:
        # Another system may have converted the line ends.
        return read_file(path, LARGEST).decode().replace("\r\n", "\n")
    except OSError as error:
        raise KdxError(f"cannot read this file: {error.strerror}", place=str(path)) from error
    except UnicodeDecodeError as error:
        raise KdxError("this file is not UTF-8", place=str(path)) from error


def read_report(text: str, path: Path) -> dict[str, Any]:
    """The parts of a report of `kdx report --json` that the check needs."""
    try:
        report = json.loads(text)
        list(parts_of_json(text))
        return {"sweeps": tuple(map(str, report["sweeps"])), "tables": report["tables"]}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise KdxError(
            "this is no report of kdx in JSON", place=str(path), hint="kdx report --json > FILE.json writes one"
        ) from error

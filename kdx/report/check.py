"""Do the numbers in a file that kdx wrote earlier still match the database?

A file of `kdx report --json` is compared number by number in full precision. A text in Markdown or LaTeX, such as a
paper, is compared by what it shows: each table that stands in it as kdx wrote it, place by place, as kdx writes it now.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from pathlib import Path
from typing import Any

from kdx.errors import KdxError
from kdx.report.as_json import to_json
from kdx.report.latex import to_latex
from kdx.report.markdown import to_markdown
from kdx.report.table import Table

_LEVELS = " / "
_NEVER = frozenset({"run", "run_id"})
"""Keys that tell no number: a repeated run has another id."""
_WHERE_ASKED = frozenset({"bootstrap"})
"""Keys that are null unless they are asked for."""
_ROUNDING = 1e-9
"""Relative: another processor or library may sum in another order."""
_ROW = re.compile(r"\s*\|(.*)\|\s*")
_BAR = re.compile(r"(?<!\\)\|")
_LEFT = re.compile(r"\s*:-+\s*")
_TABULAR = re.compile(
    r"\\begin\{tabular\}\{(?P<columns>(?:[^{}]|\{[^{}]*\})*)\}(?P<body>.*?)\\end\{tabular\}", re.DOTALL
)
_LABEL = re.compile(r"\\label\{([^}]*)\}")
_RULES = re.compile(r"\\(?:toprule|midrule|bottomrule|addlinespace)\b|\\cmidrule\([lr]*\)\{[^}]*\}")
_AMPERSAND = re.compile(r"(?<!\\)&")
_SPANNING = re.compile(r"\\multicolumn\{(\d+)\}\{[^}]*\}\{(.*)\}")


@dataclass(frozen=True)
class Change:
    """One thing that the file tells otherwise than the database."""

    table: str
    place: str
    """Row and column, as they are printed."""
    what: str
    """Such as `mean`; empty for all that is shown there."""
    was: str
    """In the file."""
    now: str
    """By the database."""


@dataclass(frozen=True)
class Checked:
    """What a comparison came to."""

    tables: tuple[str, ...]
    """Names of those that were compared."""
    absent: tuple[str, ...]
    """Names of those that are not in the file."""
    numbers: int
    """Values compared."""
    changes: tuple[Change, ...]


def sweep_in(path: Path) -> str | None:
    """The sweep that a file of `kdx report --json` is of; None for other files.

    Raises:
        KdxError: see `check`.
    """
    return None if _text_format(path) else str(_json(path)["sweep"])


def check(path: Path, tables: Sequence[Table], *, partly: bool = False) -> Checked:
    """Compares a file with the tables as they are now.

    Args:
        tables: of the sweep. A text may have those of other sweeps too, which do not count.
        partly: these are not all of the sweep's, so that a report in JSON may have more.

    Raises:
        KdxError: the file cannot be read, is none that kdx wrote, or has none of these tables.
    """
    then: list[_Part]
    text = _text_format(path)
    if text:
        then = list(text.parts(_read(path)))
        now = [list(text.parts(text.write(table))) for table in tables]
    else:
        then = list(map(_part_of_json, _json(path)["tables"]))
        now = [[_part_of_json(to_json(table))] for table in tables]
    found = [(table, part, old) for table, parts in zip(tables, now, strict=True) for part, old in _paired(parts, then)]
    if not found:
        raise KdxError(
            "none of these tables stands in the file as kdx writes it",
            place=str(path),
            allowed=[table.name for table in tables],
            hint="name the sweep that it is of",
        )
    changes = [change for table, part, old in found for change in _changes(table.name, old, part)]
    compared = tuple(dict.fromkeys(table.name for table, _, _ in found))
    if not text and not partly:
        gone = [old.title for old in then if old.title not in compared]
        changes += [Change(name, "the whole table", "", "there", "not there") for name in gone]
    return Checked(
        tables=compared,
        absent=tuple(table.name for table in tables if table.name not in compared),
        numbers=sum(len(values) for _, _, old in found for values in old.places.values()),
        changes=tuple(changes),
    )


@dataclass(frozen=True)
class _Part:
    """A table as plain values: title and header, and place → what → value."""

    title: str
    header: tuple[str, ...]
    places: Mapping[str, Mapping[str, Any]]


def _paired(parts: Iterable[_Part], then: Sequence[_Part]) -> Iterator[tuple[_Part, _Part]]:
    """Each part with the one of the file that has its title, or else, alone of all, its header."""
    for part in parts:
        same = [old for old in then if old.title == part.title]
        same = same or [old for old in then if old.header and old.header == part.header]
        if len(same) == 1:
            yield part, same[0]


def _changes(table: str, then: _Part, now: _Part) -> Iterator[Change]:
    for place in dict.fromkeys((*then.places, *now.places)):
        if place not in then.places or place not in now.places:
            there = ("not there", "there") if place in now.places else ("there", "not there")
            yield Change(table, place, "", *there)
            continue
        new = now.places[place]
        for what, was in then.places[place].items():
            if not _equal(was, new.get(what)) and not (what in _WHERE_ASKED and new.get(what) is None):
                yield Change(table, place, what, _told(was), _told(new.get(what)))


def _equal(was: Any, now: Any) -> bool:
    if isinstance(was, float) or isinstance(now, float):
        numbers = [one for one in (was, now) if isinstance(one, int | float) and isfinite(one)]
        # What is not finite is null in JSON.
        return isclose(*numbers, rel_tol=_ROUNDING) if len(numbers) == 2 else not numbers
    return bool(was == now)


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _part_of_json(table: Mapping[str, Any]) -> _Part:
    places: dict[str, dict[str, Any]] = {}
    sections: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "cells": _place,
        "differences": lambda one: f"{_place(one)} against {_place(one['against'])}",
        "errors": lambda one: f"errors of {one['task']}, {one['metric']}",
    }
    for section, name in sections.items():
        for entry in table[section]:
            values = {key: value for key, value in entry.items() if key not in ("row", "column", "against")}
            places[name(entry)] = dict(_leaves(values))
    return _Part(str(table["name"]), (), places)


def _place(entry: Mapping[str, Any]) -> str:
    return ", ".join(_LEVELS.join(entry[side].values()) for side in ("row", "column") if entry[side])


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            if key not in _NEVER:
                yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def _parts_of_markdown(text: str) -> Iterator[_Part]:
    """The tables of a Markdown text, each with the bold line above it."""
    title, lines = "", text.splitlines()
    index = 0
    while index < len(lines):
        block = []
        while index < len(lines) and (row := _ROW.fullmatch(lines[index])):
            block.append([" ".join(cell.split()) for cell in _BAR.split(row[1])])
            index += 1
        if len(block) > 1:
            yield _part_of_block(title, block)
        if index < len(lines):
            title = lines[index].strip() or title
            index += 1


def _part_of_block(title: str, block: Sequence[Sequence[str]]) -> _Part:
    header, rules, *rows = block
    names = sum(_LEFT.fullmatch(rule) is not None for rule in rules)
    places = {}
    for row in rows:
        for column, shown in zip(header[names:], row[names:], strict=False):
            places[f"{_LEVELS.join(row[:names])}, {column}"] = {"": shown}
    return _Part(title, tuple(header), places)


def _parts_of_latex(text: str) -> Iterator[_Part]:
    """The tables of a LaTeX text, each with the label before it."""
    start = 0
    for tabular in _TABULAR.finditer(text):
        labels = _LABEL.findall(text, start, tabular.start())
        start = tabular.end()
        head, _, body = tabular["body"].partition("\\midrule")
        headers = [_spread(cells) for cells in _rows_of_latex(head)]
        names = len(tabular["columns"]) - len(tabular["columns"].lstrip("l"))
        columns = [_LEVELS.join(filter(None, level)) for level in zip(*headers, strict=False)]
        above = [""] * names
        places: dict[str, dict[str, Any]] = {}
        for cells in _rows_of_latex(body):
            # Names that are those of the row above are left out.
            above = [cell or before for cell, before in zip(cells, above, strict=False)]
            for column, shown in zip(columns[names:], cells[names:], strict=False):
                place = places.setdefault(f"{_LEVELS.join(above)}, {column}", {"": ""})
                place[""] = f"{place['']} {shown}".strip()
        yield _Part(labels[-1] if labels else "", tuple(columns), places)


def _rows_of_latex(text: str) -> Iterator[list[str]]:
    for row in _RULES.sub("", text).split("\\\\\n"):
        if row.strip():
            yield [" ".join(cell.split()) for cell in _AMPERSAND.split(row)]


def _spread(cells: Sequence[str]) -> list[str]:
    """Header cells, those that span columns once for each."""
    spread: list[str] = []
    for cell in cells:
        over = _SPANNING.fullmatch(cell)
        spread += [over[2]] * int(over[1]) if over else [cell]
    return spread


@dataclass(frozen=True)
class _Text:
    """A format in which a paper shows tables."""

    write: Callable[[Table], str]
    parts: Callable[[str], Iterator[_Part]]


_MARKDOWN = _Text(to_markdown, _parts_of_markdown)
_FORMATS = {".json": None, ".md": _MARKDOWN, ".markdown": _MARKDOWN, ".tex": _Text(to_latex, _parts_of_latex)}


def _text_format(path: Path) -> _Text | None:
    """How the file shows its tables; None for JSON."""
    if path.suffix.lower() not in _FORMATS:
        raise KdxError(
            f"kdx cannot compare a file named `{path.name}`",
            place=str(path),
            allowed="FILE.json of kdx report --json, or FILE.md or FILE.tex with tables of kdx report --format",
        )
    return _FORMATS[path.suffix.lower()]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise KdxError(f"cannot read this file: {error.strerror}", place=str(path)) from error
    except UnicodeDecodeError as error:
        raise KdxError("this file is not UTF-8", place=str(path)) from error


def _json(path: Path) -> Mapping[str, Any]:
    """What `kdx report --json` wrote, as far as it is looked at."""
    try:
        whole = json.loads(_read(path))
        str(whole["sweep"])
        for table in whole["tables"]:
            _part_of_json(table)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise KdxError(
            "this is no report of kdx in JSON", place=str(path), hint="kdx report --json > FILE.json writes one"
        ) from error
    return dict(whole)

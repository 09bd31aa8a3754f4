"""Does what stands in a file that kdx wrote earlier still match the database?

A file of `kdx report --json` is compared value by value in full precision. A text in Markdown or LaTeX, such as a
paper, is compared by what it shows: each table that stands in it as kdx wrote it, place by place, as kdx writes it now,
with the statistics, differences and published values that stand there too, its caption and the notes below. A paper may
leave captions and notes out, or write its own.

What a file tells of these tables and cannot be compared, such as a table that was rewritten under its label or a
randomisation of sentences that was not made again, is no match.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose, isfinite
from pathlib import Path
from typing import Any

from kdx.errors import KdxError
from kdx.files import read_file
from kdx.report.papers.paper_file import load_paper, shipped
from kdx.report.render.json import to_json
from kdx.report.render.latex.characters import BREAK, tex
from kdx.report.render.latex.writer import label, to_latex
from kdx.report.render.listings import OVER_SENTENCES, listings
from kdx.report.render.markdown import plain, to_markdown
from kdx.report.render.wording import LEVELS, caption
from kdx.report.table.table import Table

LARGEST = 100_000_000
"""Bytes of a file that is checked."""

_NEVER = frozenset({"run", "run_id"})
"""Keys that tell no number: a repeated run has another id."""
_RANDOMISATION = frozenset({"randomisation", *OVER_SENTENCES})
"""Keys and columns that tell nothing, or are not there, unless a randomisation is asked for."""
_THERE, _NOT_THERE = "there", "not there"
_ROUNDING = 1e-9
"""Relative: another processor or library may sum in another order."""
_ROW = re.compile(r"\s*\|(.*)\|\s*")
_BAR = re.compile(r"(?<!\\)\|")
_LEFT = re.compile(r"\s*:-+\s*")
_COLUMNS = r"(?:[^{}]|\{[^{}]*\})*"
_TABULAR = re.compile(
    r"\\begin\{(?P<name>tabular[x*]?|longtable)\}(?:\{[^{}]*\})?\{(?P<columns>" + _COLUMNS + r")\}"
    r"(?P<body>.*?)\\end\{(?P=name)\}",
    re.DOTALL,
)
# Columns of names start at the left; numbers, folded or not, end at the right.
_NAME = re.compile(r"(?:\||@\{[^{}]*\})*(?:>\{(?!\\raggedleft)[^{}]*\})?(?:[lX]|[pmb]\{[^{}]*\})")
_APART = re.compile(r"\\(?:begin\{table|caption|(?:sub)*section|chapter)")
_PARAGRAPH = re.compile(r"\\par(?![a-z])|\n\s*\n")
_SMALL = re.compile(r".*\{\\footnotesize(\\[a-z]+(=0pt)?)*", re.DOTALL)
_LABEL = re.compile(r"\\label\{([^}]*)\}")
_RULES = re.compile(r"\\(?:toprule|midrule|bottomrule|addlinespace)\b|\\cmidrule\([lr]*\)\{[^}]*\}")
_AMPERSAND = re.compile(r"(?<!\\)&")
_SPANNING = re.compile(r"\\multicolumn\{(\d+)\}\{" + _COLUMNS + r"\}\{(.*)\}")


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
class FileComparison:
    """What a comparison came to."""

    tables: tuple[str, ...]
    """Names of those that were compared."""
    absent: tuple[str, ...]
    """Names of those that are not in the file."""
    numbers: int
    """Values compared."""
    changes: tuple[Change, ...]
    left_out: tuple[str, ...]
    """What the file tells of these tables but was not compared."""


@dataclass(frozen=True)
class Asked:
    """What the report in a file had been asked for, as far as the file tells."""

    sweep: str | None
    paper: str | None
    """The paper inside kdx whose values stand beside ours."""
    randomisation: bool


def asked_in(path: Path) -> Asked:
    """What to ask for again, so that the whole file can be compared.

    Raises:
        KdxError: see `compare_file`.
    """
    form, text = _form(path), _read(path)
    if form is _JSON:
        report = _json(text, path)
        beside = [table["published"].get("paper") for table in report["tables"] if table.get("published")]
        randomisation = any(one.get("randomisation") for table in report["tables"] for one in table["differences"])
    else:
        beside = [name for name in shipped() if form.plain(f"beside {load_paper(name).title}") in text]
        report, randomisation = {}, all(header in text for header in OVER_SENTENCES)
    return Asked(report.get("sweep"), next((name for name in beside if name in shipped()), None), randomisation)


def compare_file(path: Path, tables: Sequence[Table], *, partly: bool = False) -> FileComparison:
    """Compares a file with the tables as they are now.

    Args:
        tables: of the sweep. A text may have those of other sweeps too, which do not count.
        partly: these are not all of the sweep's, so that a report in JSON may have more.

    Raises:
        KdxError: the file cannot be read, is none that kdx wrote, or has none of these tables.
    """
    form, text = _form(path), _read(path)
    report = _json(text, path) if form is _JSON else None
    then = list(form.parts(text))
    now = [list(form.parts(form.write(table, False))) for table in tables]
    pairs, unsure = _paired(now, then)
    if not pairs:
        raise KdxError(
            "none of these tables stands in the file as kdx writes it",
            place=str(path),
            allowed=[table.layout.name for table in tables],
            hint="name the sweep that it is of",
        )
    compared = {tables[index].layout.name: None for index, _ in pairs.values()}
    changes, left_out = [], [then[at].title for at in unsure]
    for at, (index, part) in pairs.items():
        for one in _changes(tables[index].layout.name, then[at], part):
            if not _of_randomisation(one) or not {one.was, one.now} & {_NOT_THERE, "null"}:
                changes.append(one)
            elif one.was not in (_NOT_THERE, "null"):
                left_out.append(f"{one.table}: randomisation of sentences")
    for at, (index, part) in pairs.items() if form is not _JSON else ():
        which = next(number for number, one in enumerate(now[index]) if one is part)
        short, full = (_notes(tables[index], which, form, full=full) for full in (False, True))
        changes += _changes_of_notes(tables[index].layout.name, then[at].notes, short, full)
    changes += [
        one for table in tables if table.layout.name in compared for one in _changes_of_caption(table, text, form)
    ]
    left_out += [
        table.layout.name
        for table in tables
        if table.layout.name not in compared and form.names(table.layout.name, text)
    ]
    its = tuple(form.belonging(name) for name in compared)
    left_out += [
        old.title for at, old in enumerate(then) if at not in pairs and old.places and old.title.startswith(its)
    ]
    if report and not partly:
        gone = [table["name"] for table in report["tables"] if table["name"] not in compared]
        changes += [Change(name, "the whole table", "", _THERE, _NOT_THERE) for name in gone]
    return FileComparison(
        tables=tuple(compared),
        absent=tuple(table.layout.name for table in tables if table.layout.name not in compared),
        numbers=sum(len(values) for at in pairs for values in then[at].places.values()),
        changes=tuple(changes),
        left_out=tuple(dict.fromkeys(left_out)),
    )


@dataclass(frozen=True)
class _Part:
    """A table, or what belongs to one, as plain values: title and header, and place → what → value."""

    title: str
    header: tuple[str, ...]
    places: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    """The paragraphs that follow it, up to the next table."""


def _paired(tables: Sequence[Sequence[_Part]], then: Sequence[_Part]) -> tuple[dict[int, tuple[int, _Part]], list[int]]:
    """Index of a part in the file → its table and its part now; and the parts that may be of one of several tables.

    A title finds each part that has it, and a paper may show a table twice. A table under a title of the paper's own is
    found by its header, if no other has that; what belongs to a table, by its header behind it.
    """
    pairs = {
        at: (index, part)
        for at, old in enumerate(then)
        for index, parts in enumerate(tables)
        for part in parts
        if old.title == part.title
    }
    unsure: list[int] = []
    for index, (whole, *_) in enumerate(tables):
        if all(part is not whole for _, part in pairs.values()):
            alike = [at for at, old in enumerate(then) if at not in pairs and old.header and old.header == whole.header]
            if len(alike) == 1:
                pairs[alike[0]] = index, whole
            else:
                unsure += alike
    last = None
    for at, old in enumerate(then):
        if at in pairs:
            last = pairs[at][0]
        elif last is not None:
            alike_parts = [part for part in tables[last][1:] if old.header and part.header == old.header]
            if alike_parts:
                pairs[at] = last, alike_parts[0]
            else:
                last = None
    return dict(sorted(pairs.items())), list(dict.fromkeys(at for at in unsure if at not in pairs))


def _changes(table: str, then: _Part, now: _Part) -> Iterator[Change]:
    for place in dict.fromkeys((*then.places, *now.places)):
        if place not in then.places or place not in now.places:
            there = (_NOT_THERE, _THERE) if place in now.places else (_THERE, _NOT_THERE)
            yield Change(table, place, "", *there)
            continue
        old, new = then.places[place], now.places[place]
        for what in dict.fromkeys((*old, *new)):
            if what not in old or what not in new or not _equal(old[what], new[what]):
                yield Change(
                    table, place, what, *(_told(its[what]) if what in its else _NOT_THERE for its in (old, new))
                )


_OPENINGS = (
    "Per cell, the",
    "No cell is",
    "The smallest difference",
    "Compared cells also",
    "Spread over seeds",
    "This kdx does",
)
"""How the notes of a table begin, those too that a table has no longer."""


_SENTENCES = re.compile(r"\s*p over sentences: .*", re.DOTALL)
"""What a randomisation adds to the notes, which is there only where it was asked for."""


def _notes(table: Table, part: int, form: "_Form", *, full: bool) -> list[str]:
    """The paragraphs below a table, or below what belongs to it, as the format writes them now."""
    below = [caption(table, best="Bold", full=full)]
    below += [form.paragraphs(one.notes) for one in listings(table, statistics=True) if one.rows]
    return [" ".join(form.plain(note).split()) for note in below[part]]


def _opening(note: str) -> str:
    """What tells which note it is."""
    return note.partition(":")[0] if note.startswith(("Unequal ", "Not compared ")) else " ".join(note.split()[:3])


def _changes_of_notes(table: str, then: Sequence[str], short: Sequence[str], full: Sequence[str]) -> Iterator[Change]:
    """Notes of kdx's own that are not those of now; nothing where a text has none."""
    known = {*_OPENINGS, *map(_opening, short), *map(_opening, full)}
    short, full, then = ([*filter(None, (_SENTENCES.sub("", one) for one in those))] for those in (short, full, then))
    said = [note for note in then if _opening(note) in known or note.startswith(("Unequal ", "Not compared "))]
    if not said:
        return
    expected = full if any(note in full and note not in short for note in said) else short
    for note in said:
        if note not in short and note not in full:
            now = next((one for one in expected if _opening(one) == _opening(note) and one not in said), "")
            yield Change(table, "notes", "", *_where_they_differ(note, now))
    told = set(map(_opening, said))
    for note in expected:
        if _opening(note) not in told:
            yield Change(table, "notes", "", _NOT_THERE, _shortened(note))


def _changes_of_caption(table: Table, text: str, form: "_Form") -> Iterator[Change]:
    """Captions as kdx writes them, behind the table's name, that are not the grid's own words of now."""
    name, told = form.title(table)
    start = text.find(f"{name}: ")
    while told and start >= 0:
        there = text[start + len(name) + 2 :].replace(BREAK, "")
        if not there.startswith(told):
            yield Change(table.layout.name, "caption", "", _shortened(there.partition("\n")[0]), told)
        start = text.find(f"{name}: ", start + 1)


def _where_they_differ(was: str, now: str) -> tuple[str, str]:
    """Two texts from shortly before the first difference on."""
    if not now:
        return _shortened(was), _NOT_THERE
    same = next(
        (at for at, pair in enumerate(zip(was, now, strict=False)) if pair[0] != pair[1]), min(len(was), len(now))
    )
    start = max(0, was.rfind(" ", 0, max(0, same - 20)) + 1)
    return _shortened(was[start:]), _shortened(now[start:])


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST = 90
"""Letters of a note that are shown."""


def _of_randomisation(change: Change) -> bool:
    return bool(_RANDOMISATION & {change.what.partition(".")[0], change.place.rpartition(", ")[2]})


def _equal(was: Any, now: Any) -> bool:
    if isinstance(was, float) or isinstance(now, float):
        numbers = [one for one in (was, now) if isinstance(one, int | float) and isfinite(one)]
        # What is not finite is null in JSON.
        return isclose(*numbers, rel_tol=_ROUNDING) if len(numbers) == 2 else not numbers
    return bool(was == now)


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _parts_of_json(text: str) -> Iterator[_Part]:
    """The tables of a report, each with the published values beside it."""
    names: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "cells": _place,
        "differences": lambda one: f"{_place(one)} against {_place(one['against'])}",
        "errors": lambda one: f"errors of {one['task']}, {one['metric']}",
        "unequal": lambda one: f"unequal {one['what']} of {one['task']}, {one['metric']}",
        "order": lambda one: f"order of {one['task']}, {one['corpus']}, {one['metric']}",
    }

    def part(title: str, of: Mapping[str, Any], *sections: str) -> _Part:
        places: dict[str, dict[str, Any]] = {}
        for section in sections:
            for entry in of[section]:
                place, number = names[section](entry), 1
                # Cells of other data have errors and orders of their own, under the same words.
                while (numbered := place if number == 1 else f"{place} #{number}") in places:
                    number += 1
                values = {key: value for key, value in entry.items() if key not in ("row", "column", "against")}
                places[numbered] = dict(_leaves(values))
        return _Part(title, (), places)

    def said(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        parts = {
            "caption": [table.get("caption")],
            "notes": table.get("notes"),
            "definitions": table.get("definitions"),
        }
        return {what: dict(_leaves({"": value})) for what, value in parts.items() if value is not None}

    for table in json.loads(text)["tables"]:
        whole = part(table["name"], {"unequal": (), **table}, "cells", "differences", "errors", "unequal")
        yield replace(whole, places={**whole.places, **said(table)})
        if table.get("published"):
            yield part(f"{table['name']}: published values", table["published"], "cells", "order")


def _place(entry: Mapping[str, Any]) -> str:
    return ", ".join(LEVELS.join(entry[side].values()) for side in ("row", "column") if entry[side])


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
    """The tables of a Markdown text, each with the line above it, which is bold, and what follows."""
    title, lines = "", text.splitlines()
    index, part = 0, None
    paragraphs = [""]
    while index < len(lines):
        block = []
        while index < len(lines) and (row := _ROW.fullmatch(lines[index])):
            block.append([" ".join(cell.split()) for cell in _BAR.split(row[1])])
            index += 1
        if len(block) > 1:
            if part:
                yield replace(part, notes=tuple(filter(None, paragraphs)))
            part, paragraphs = _part_of_block(title, block), [""]
        if index < len(lines):
            line = " ".join(lines[index].split())
            title = line or title
            if line:
                paragraphs[-1] = f"{paragraphs[-1]} {line}".strip()
            elif paragraphs[-1]:
                paragraphs.append("")
            index += 1
    if part:
        yield replace(part, notes=tuple(filter(None, paragraphs)))


def _part_of_block(title: str, block: Sequence[Sequence[str]]) -> _Part:
    header, rules, *rows = block
    names = sum(_LEFT.fullmatch(rule) is not None for rule in rules)
    places = {}
    for row in rows:
        for column, shown in zip(header[names:], row[names:], strict=False):
            places[f"{LEVELS.join(row[:names])}, {column}"] = {"": shown}
    return _Part(title, tuple(header), places)


def _parts_of_latex(text: str) -> Iterator[_Part]:
    """The tables of a LaTeX text, each with the label before it or in it; what goes on below is one table."""
    start, whole, its = 0, _Part("", (), {}), None
    tabulars = list(_TABULAR.finditer(text))
    ends = [one.start() for one in tabulars[1:]]
    for tabular, end in zip(tabulars, [*ends, len(text)], strict=True):
        labels = _LABEL.findall(text, start, tabular.end())
        apart = _APART.search(text, start, tabular.start())
        start = tabular.end()
        head, _, body = tabular["body"].partition("\\midrule")
        # A longtable has its caption before its head, and a head for the pages that follow.
        head, body = head.rpartition("\\toprule")[2], body.rpartition("\\endlastfoot")[2]
        names = _count_of_names(tabular["columns"])
        headers = [_spread(cells) for cells in _rows_of_latex(head)]
        columns = [LEVELS.join(filter(None, level)) for level in zip(*headers, strict=False)]
        rows = list(_rows_of_latex(body))
        places = _places_of_latex(rows, columns, names)
        before, its = its, (columns[:names], [row[:names] for row in rows])
        if before == its and not labels and not apart:
            header = (*whole.header, *columns[names:])
            whole = _Part(whole.title, header, {**whole.places, **places}, _notes_of_latex(text[start:end]))
            continue
        if before is not None:
            yield whole
        whole = _Part(labels[-1] if labels else "", tuple(columns), places, _notes_of_latex(text[start:end]))
    if its is not None:
        yield whole


def _notes_of_latex(text: str) -> tuple[str, ...]:
    paragraphs = _PARAGRAPH.split(text.replace(BREAK, ""))
    return tuple(filter(None, (" ".join(_SMALL.sub("", one).split()) for one in paragraphs)))


def _count_of_names(columns: str) -> int:
    """How many columns on the left hold names, as tabular takes its columns."""
    count, end = 0, 0
    while name := _NAME.match(columns, end):
        count, end = count + 1, name.end()
    return count


def _places_of_latex(rows: Sequence[Sequence[str]], columns: Sequence[str], names: int) -> dict[str, dict[str, Any]]:
    above = [""] * names
    places: dict[str, dict[str, Any]] = {}
    for cells in rows:
        # Names that are those of the row above are left out.
        above = [cell or before for cell, before in zip(cells, above, strict=False)]
        for column, shown in zip(columns[names:], cells[names:], strict=False):
            place = places.setdefault(f"{LEVELS.join(above)}, {column}", {"": ""})
            place[""] = f"{place['']} {shown}".strip()
    return places


def _rows_of_latex(text: str) -> Iterator[list[str]]:
    for row in _RULES.sub("", text.replace(BREAK, "")).split("\\\\\n"):
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
class _Form:
    """A format that shows tables."""

    write: Callable[[Table, bool], str]
    """The table with its statistics, and with short or full notes."""
    parts: Callable[[str], Iterator[_Part]]
    """The first part that is written of a table is the table itself."""
    belonging: Callable[[str], str]
    """How the title of what belongs to a table of this name begins."""
    names: Callable[[str, str], bool]
    """Whether a text has a table of this name, in whatever shape."""
    title: Callable[[Table], tuple[str, str]]
    """A table's name and caption, as its title has them."""
    plain: Callable[[str], str] = str
    """How it writes a name."""
    paragraphs: Callable[[Sequence[str]], list[str]] = list
    """How it divides the notes of what belongs to a table."""


_JSON = _Form(
    write=lambda table, full: json.dumps({"tables": [to_json(table)]}),
    parts=_parts_of_json,
    belonging=lambda name: f"{name}: ",
    names=lambda name, text: False,
    title=lambda table: (table.layout.name, ""),
)
_MARKDOWN = _Form(
    write=lambda table, full: to_markdown(table, statistics=True, full=full),
    parts=_parts_of_markdown,
    belonging=lambda name: f"**{plain(name)}: ",
    names=lambda name, text: f"**{plain(name)}**" in text,
    title=lambda table: (f"**{plain(table.layout.name)}**", plain(table.layout.caption)),
    plain=plain,
    paragraphs=lambda notes: [" ".join(notes)],
)
_LATEX = _Form(
    write=lambda table, full: to_latex(table, statistics=True, full=full),
    parts=_parts_of_latex,
    belonging=lambda name: f"{label(name)}:",
    names=lambda name, text: f"\\label{{{label(name)}}}" in text,
    title=lambda table: (f"\\textbf{{{tex(table.layout.name)}}}", tex(table.layout.caption)),
    plain=tex,
)
_FORMS = {".json": _JSON, ".md": _MARKDOWN, ".markdown": _MARKDOWN, ".tex": _LATEX}


def _form(path: Path) -> _Form:
    """How the file shows its tables."""
    if path.suffix.lower() not in _FORMS:
        raise KdxError(
            f"kdx cannot compare a file named `{path.name}`",
            place=str(path),
            allowed="FILE.json of kdx report --json, or FILE.md or FILE.tex with tables of kdx report --format",
        )
    return _FORMS[path.suffix.lower()]


def _read(path: Path) -> str:
    try:
        # Lines may have come to end as elsewhere.
        return read_file(path, LARGEST).decode().replace("\r\n", "\n")
    except OSError as error:
        raise KdxError(f"cannot read this file: {error.strerror}", place=str(path)) from error
    except UnicodeDecodeError as error:
        raise KdxError("this file is not UTF-8", place=str(path)) from error


def _json(text: str, path: Path) -> dict[str, Any]:
    """What `kdx report --json` wrote, as far as it is looked at."""
    try:
        report = json.loads(text)
        list(_parts_of_json(text))
        return {"sweep": str(report["sweep"]), "tables": report["tables"]}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise KdxError(
            "this is no report of kdx in JSON", place=str(path), hint="kdx report --json > FILE.json writes one"
        ) from error

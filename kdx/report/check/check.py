"""Compares a file that kdx wrote earlier with the database.

A file of `kdx report --json` is compared value by value in full precision. A text in Markdown or LaTeX, such as a
paper, is compared by what it shows: each table in it, place by place, with what kdx writes now, together with its
statistics, differences, published values, caption and notes. A paper may leave captions and notes out, or write its
own.

A part of these tables that cannot be compared, such as a table that was rewritten under its label or a randomisation of
sentences that was not repeated, counts as no match.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kdx.errors import KdxError
from kdx.report.check.forms import JSON, form_of, not_read, read_report, read_text
from kdx.report.check.notes import changes_of_caption, changes_of_notes, notes_now
from kdx.report.check.parts import NOT_THERE, THERE, NumberChange, Part
from kdx.report.papers.paper_file import load_paper, shipped
from kdx.report.sheets.listings import MEAN, OVER_SENTENCES
from kdx.report.table.table import Table

_RANDOMISATION = frozenset({"randomisation", *OVER_SENTENCES})
"""Keys and columns that are empty or missing unless a randomisation is asked for."""
_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
_ROUNDING = 1e-9
"""Relative tolerance: another processor or library may sum in another order."""


@dataclass(frozen=True)
class FileComparison:
    """The result of comparing a file."""

    tables: tuple[str, ...]
    """Names of the tables that were compared."""
    absent: tuple[str, ...]
    """Names of the tables that are not in the file."""
    numbers: int
    """Values compared."""
    changes: tuple[NumberChange, ...]
    left_out: tuple[str, ...]
    """Parts of these tables in the file that were not compared."""


@dataclass(frozen=True)
class AskedReport:
    """The options with which the report in a file was made, as far as the file shows them."""

    sweeps: tuple[str, ...]
    """Names of the sweeps; none where the file does not show them."""
    paper: str | None
    """The shipped paper whose values the report has."""
    randomisation: bool


def asked_in(path: Path) -> AskedReport:
    """The options that make a report with everything in the file.

    Raises:
        KdxError: see `compare_file`.
    """
    form, text = form_of(path), read_text(path)
    if form is JSON:
        report = read_report(text, path)
        beside = [table["published"].get("paper") for table in report["tables"] if table.get("published")]
        randomisation = any(one.get("randomisation") for table in report["tables"] for one in table["differences"])
    else:
        beside = [name for name in shipped() if form.plain(f"beside {load_paper(name).title}") in text]
        report, randomisation = {}, all(header in text for header in OVER_SENTENCES)
    return AskedReport(
        report.get("sweeps", ()), next((name for name in beside if name in shipped()), None), randomisation
    )


def sweeps_of_tables(path: Path, tables: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The sweeps of the tables in a file, by the names of the tables; none where it shows no name that is known.

    Args:
        tables: sweep → names of its tables; of several sweeps with a table of this name, the first counts.

    Raises:
        KdxError: see `compare_file`.
    """
    form = form_of(path)
    titles = [part.title for part in form.parts(read_text(path))]
    owners = (
        next((sweep for sweep, names in tables.items() if any(form.heads(name, title) for name in names)), None)
        for title in titles
    )
    return tuple(dict.fromkeys(filter(None, owners)))


def compare_file(
    path: Path, tables: Sequence[Table], *, partly: bool = False, others: Mapping[str, Sequence[str]] = _NOTHING
) -> FileComparison:
    """Compares a file with the tables as they are now.

    Args:
        tables: those of the sweeps that are compared.
        partly: whether the sweep has other tables too, so that a report in JSON may have more.
        others: other sweep → the names of its tables, which count as not compared where the file has them.

    Raises:
        KdxError: the file cannot be read, is none that kdx wrote, or has none of these tables.
    """
    form, text = form_of(path), read_text(path)
    report = read_report(text, path) if form is JSON else None
    then = list(form.parts(text))
    if not then:
        missing = not_read(text) if path.suffix.lower() == ".tex" else []
        hint = f"it inputs {', '.join(missing)}, not found in its folder; check those" if missing else None
        raise KdxError("there is no table in this file", place=str(path), hint=hint)
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
            if _is_new_column(one, then[at]):
                continue
            if not _of_randomisation(one) or not {one.was, one.now} & {NOT_THERE, "null"}:
                changes.append(one)
            elif one.was not in (NOT_THERE, "null"):
                left_out.append(f"{one.table}: randomisation of sentences")
    for at, (index, part) in pairs.items() if form is not JSON else ():
        which = next(number for number, one in enumerate(now[index]) if one is part)
        short, full = (notes_now(tables[index], which, form, full=full) for full in (False, True))
        changes += changes_of_notes(tables[index].layout.name, then[at].notes, short, full)
    changes += [
        one for table in tables if table.layout.name in compared for one in changes_of_caption(table, text, form)
    ]
    left_out += [
        table.layout.name
        for table in tables
        if table.layout.name not in compared and form.names(table.layout.name, text)
    ]
    prefixes = tuple(form.belonging(name) for name in compared)
    left_out += [
        old.title for at, old in enumerate(then) if at not in pairs and old.places and old.title.startswith(prefixes)
    ]
    left_out += [
        f"{name} of sweep {sweep}"
        for sweep, names in others.items()
        for name in names
        if name not in {table.layout.name for table in tables}
        and any(form.heads(name, old.title) for at, old in enumerate(then) if at not in pairs)
    ]
    if report and not partly:
        gone = [table["name"] for table in report["tables"] if table["name"] not in compared]
        changes += [NumberChange(name, "the whole table", "", THERE, NOT_THERE) for name in gone]
    return FileComparison(
        tables=tuple(compared),
        absent=tuple(table.layout.name for table in tables if table.layout.name not in compared),
        numbers=sum(len(values) for at in pairs for values in then[at].places.values()),
        changes=tuple(changes),
        left_out=tuple(dict.fromkeys(left_out)),
    )


def _paired(tables: Sequence[Sequence[Part]], then: Sequence[Part]) -> tuple[dict[int, tuple[int, Part]], list[int]]:
    """Index of a part in the file → index of its table, and its part now; and the parts that fit several tables.

    A part is found by its title, and a paper may show a table twice. A table under the paper's own title is found by
    its header if no other table has it; a listing of that table is found by its header after the table.
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


def _changes(table: str, then: Part, now: Part) -> Iterator[NumberChange]:
    for place in dict.fromkeys((*then.places, *now.places)):
        if place not in then.places or place not in now.places:
            presence = (NOT_THERE, THERE) if place in now.places else (THERE, NOT_THERE)
            yield NumberChange(table, place, "", *presence)
            continue
        old, new = then.places[place], now.places[place]
        for what in dict.fromkeys((*old, *new)):
            if what not in old or what not in new or not _equal(old[what], new[what]):
                yield NumberChange(
                    table, place, what, *(_as_text(side[what]) if what in side else NOT_THERE for side in (old, new))
                )


def _is_new_column(change: NumberChange, then: Part) -> bool:
    """Whether the table was made before it had this column, which says nothing against its numbers."""
    is_column = bool(then.header) and change.place.rpartition(", ")[2] == MEAN
    return is_column and MEAN not in then.header and change.was == NOT_THERE


def _of_randomisation(change: NumberChange) -> bool:
    return bool(_RANDOMISATION & {change.what.partition(".")[0], change.place.rpartition(", ")[2]})


def _equal(was: Any, now: Any) -> bool:
    if isinstance(was, float) or isinstance(now, float):
        numbers = [one for one in (was, now) if isinstance(one, int | float) and isfinite(one)]
        # JSON has null for a number that is not finite.
        return isclose(*numbers, rel_tol=_ROUNDING) if len(numbers) == 2 else not numbers
    return bool(was == now)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)

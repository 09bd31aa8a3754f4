"""Compares the caption above a table, and the notes below, with those that kdx writes now."""

import re
from collections.abc import Iterator, Sequence

from kdx.report.check.forms import Form
from kdx.report.check.parts import NOT_THERE, NumberChange
from kdx.report.sheets.listings import listings
from kdx.report.sheets.notes import caption
from kdx.report.table.table import Table
from kdx.report.writers.tex import BREAK

_OPENINGS = (
    "Per cell, the",
    "No cell is",
    "The smallest difference",
    "Intervals and marks",
    "Compared cells also",
    "Spread over seeds",
    "This kdx does",
)
"""How the notes of a table begin, including notes that a table no longer has."""

_OF_A_FACT = ("Unequal ", "Not compared ", "Evaluated ")
"""How a note begins that names a fact, which identifies it too."""

_SENTENCES = re.compile(r"\s*p over sentences: .*", re.DOTALL)
"""The note that is there only if a randomisation was asked for."""


def notes_now(table: Table, part: int, form: Form, *, full: bool) -> list[str]:
    """The paragraphs below a table, or below one of its listings, as the format writes them now."""
    below = [caption(table, best="Bold", full=full)]
    below += [form.paragraphs(one.notes) for one in listings(table, statistics=True) if one.rows]
    return [" ".join(form.plain(note).split()) for note in below[part]]


def _opening(note: str) -> str:
    """The beginning of a note, which identifies it whatever its numbers are."""
    if note.startswith(_OF_A_FACT):
        return note.partition(":")[0]
    return re.sub(r"\d+", "0", " ".join(note.split()[:3]))


def changes_of_notes(
    table: str, then: Sequence[str], short: Sequence[str], full: Sequence[str]
) -> Iterator[NumberChange]:
    """The differences between the notes of a text and those of now; nothing where the text has no notes of kdx."""
    known = {*_OPENINGS, *map(_opening, short), *map(_opening, full)}
    short, full, then = ([*filter(None, (_SENTENCES.sub("", one) for one in those))] for those in (short, full, then))
    own = [note for note in then if _opening(note) in known or note.startswith(_OF_A_FACT)]
    if not own:
        return
    expected = full if any(note in full and note not in short for note in own) else short
    for note in own:
        if note not in short and note not in full:
            now = next((one for one in expected if _opening(one) == _opening(note) and one not in own), "")
            yield NumberChange(table, "notes", "", *_where_they_differ(note, now))
    openings = set(map(_opening, own))
    for note in expected:
        if _opening(note) not in openings:
            yield NumberChange(table, "notes", "", NOT_THERE, _shortened(note))


def changes_of_caption(table: Table, text: str, form: Form) -> Iterator[NumberChange]:
    """The captions behind a table's name that are no longer the caption in the grid."""
    name, current = form.title(table)
    start = text.find(f"{name}: ")
    while current and start >= 0:
        written = text[start + len(name) + 2 :].replace(BREAK, "")
        # In LaTeX, a list of tables shows the caption in brackets.
        short = text[:start].rpartition("\\caption[")[2].replace(BREAK, "")
        if not written.startswith(current):
            yield NumberChange(table.layout.name, "caption", "", _shortened(written.partition("\n")[0]), current)
        elif short.endswith("]{") and "\n" not in short and short != f"{current}]{{":
            yield NumberChange(table.layout.name, "short caption", "", _shortened(short.removesuffix("]{")), current)
        start = text.find(f"{name}: ", start + 1)


def _where_they_differ(was: str, now: str) -> tuple[str, str]:
    """Both texts from shortly before their first difference on."""
    if not now:
        return _shortened(was), NOT_THERE
    same = next(
        (at for at, pair in enumerate(zip(was, now, strict=False)) if pair[0] != pair[1]), min(len(was), len(now))
    )
    start = max(0, was.rfind(" ", 0, max(0, same - 20)) + 1)
    return _shortened(was[start:]), _shortened(now[start:])


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_LONGEST = 90
"""Number of letters of a note that are shown."""

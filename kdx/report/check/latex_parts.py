"""Reads the tables of a text in LaTeX."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from kdx.report.check.parts import Part
from kdx.report.wording import LEVELS
from kdx.report.writers.tex import BREAK

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


def parts_of_latex(text: str) -> Iterator[Part]:
    """The tables of a LaTeX text, each with the label before or in it; a table that continues below is one table."""
    start, whole, its = 0, Part("", (), {}), None
    tabulars = list(_TABULAR.finditer(text))
    if not tabulars:
        return
    ends = [one.start() for one in tabulars[1:]]
    for tabular, end in zip(tabulars, [*ends, len(text)], strict=True):
        labels = _LABEL.findall(text, start, tabular.end())
        apart = _APART.search(text, start, tabular.start())
        start = tabular.end()
        head, _, body = tabular["body"].partition("\\midrule")
        # A longtable has its caption before its head, and another head for the following pages.
        head, body = head.rpartition("\\toprule")[2], body.rpartition("\\endlastfoot")[2]
        names = _count_of_names(tabular["columns"])
        headers = [_spread(cells) for cells in _rows_of_latex(head)]
        columns = [LEVELS.join(filter(None, level)) for level in zip(*headers, strict=False)]
        rows = list(_rows_of_latex(body))
        places = _places_of_latex(rows, columns, names)
        before, its = its, (columns[:names], [row[:names] for row in rows])
        if before == its and not labels and not apart:
            header = (*whole.header, *columns[names:])
            whole = Part(whole.title, header, {**whole.places, **places}, _notes_of_latex(text[start:end]))
            continue
        if before is not None:
            yield whole
        whole = Part(labels[-1] if labels else "", tuple(columns), places, _notes_of_latex(text[start:end]))
    if its is not None:
        yield whole


def _notes_of_latex(text: str) -> tuple[str, ...]:
    paragraphs = _PARAGRAPH.split(text.replace(BREAK, ""))
    return tuple(filter(None, (" ".join(_SMALL.sub("", one).split()) for one in paragraphs)))


def _count_of_names(columns: str) -> int:
    """The number of columns on the left that hold names, by the column specification of tabular."""
    count, end = 0, 0
    while name := _NAME.match(columns, end):
        count, end = count + 1, name.end()
    return count


def _places_of_latex(rows: Sequence[Sequence[str]], columns: Sequence[str], names: int) -> dict[str, dict[str, Any]]:
    above = [""] * names
    places: dict[str, dict[str, Any]] = {}
    for cells in rows:
        # Names that repeat the row above are blank.
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
    """The header cells; one that spans columns is repeated for each."""
    spread: list[str] = []
    for cell in cells:
        over = _SPANNING.fullmatch(cell)
        spread += [over[2]] * int(over[1]) if over else [cell]
    return spread

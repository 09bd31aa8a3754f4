"""A table as GitHub Markdown."""

import re

from kdx.report.inert import inert
from kdx.report.tables import Cell, Table
from kdx.report.wording import column_headers, words

# What opens a construct inside a line: code, emphasis, links, HTML, entities, math, cells, and addresses that GitHub
# would turn into links.
_MARKUP = re.compile(r"[\\`*_\[\]<>|~$&@]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def to_markdown(table: Table) -> str:
    """The table with its title above and its caption below; names come out as plain text."""
    headers = [*map(_plain, table.row_factors), *(" / ".join(map(_plain, header)) for header in column_headers(table))]
    rules = [":---"] * len(table.row_factors) + ["---:"] * len(table.columns)
    lines = [headers, rules]
    for names, cells in zip(table.rows, table.body, strict=True):
        lines.append([*map(_plain, names), *(_body(cell, show_n=table.n is None) for cell in cells)])
    title = f"**{_plain(table.name)}**" + (f": {_plain(table.caption)}" if table.caption else "")
    notes = [*map(_plain, table.notes)]
    if table.best:
        notes.append(f"Bold: {table.best}.")
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{title}\n\n{body}\n\n{' '.join(notes)}\n"


def _body(cell: Cell | None, *, show_n: bool) -> str:
    part = words(cell, show_n=show_n)
    score = f"**{part.score}**" if cell and cell.best else part.score
    spread = " ".join(filter(None, (f"{part.mean} ± {part.sd}" if part.mean else "", part.n)))
    return " · ".join(filter(None, (score, spread, part.note)))


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", inert(text))

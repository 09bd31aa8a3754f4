"""A table as GitHub Markdown."""

import re

from kdx.report.render.listings import Listing, listings
from kdx.report.render.wording import LEVELS, caption, column_headers, mark, words
from kdx.report.selection.cells import Cell
from kdx.report.table.table import Table
from kdx.sanitize import sanitize

# What opens a construct inside a line: code, emphasis, links, HTML, entities, math, cells, and addresses that GitHub
# would turn into links.
_MARKUP = re.compile(r"[\\`*_\[\]<>|~$&@]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def to_markdown(table: Table, *, statistics: bool = False, full: bool = False) -> str:
    """The table with its title above and its caption below, and what belongs to it; names come out as plain text.

    Args:
        statistics: see `kdx.report.render.listings.listings`.
        full: see `kdx.report.render.wording.caption`.
    """
    headers = [*map(plain, table.row_factors), *(LEVELS.join(map(plain, header)) for header in column_headers(table))]
    rules = [":---"] * len(table.row_factors) + ["---:"] * len(table.columns)
    lines = [headers, rules]
    for names, cells in zip(table.rows, table.body, strict=True):
        lines.append([*map(plain, names), *(_body(cell, show_n=table.n is None) for cell in cells)])
    title = f"**{plain(table.name)}**" + (f": {plain(table.caption)}" if table.caption else "")
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "\n\n".join(map(plain, caption(table, best="Bold", full=full)))
    below = "".join(f"\n{listing_to_markdown(one)}" for one in listings(table, statistics=statistics))
    return f"{title}\n\n{body}\n\n{notes}\n{below}"


def listing_to_markdown(listing: Listing) -> str:
    """The listing with its title above and its notes below."""
    rules = [":---" if index < listing.names else "---:" for index in range(len(listing.headers))]
    lines = [[*map(plain, listing.headers)], rules, *([*map(plain, row)] for row in listing.rows)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    parts = [f"**{plain(listing.title)}**", *([body] if listing.rows else []), " ".join(map(plain, listing.notes))]
    return "\n\n".join(parts) + "\n"


def _body(cell: Cell | None, *, show_n: bool) -> str:
    part = words(cell, show_n=show_n)
    score = f"**{part.score}**" if cell and cell.best else f"{part.score}{mark(cell)}"
    spread = f"± {part.sd}" if part.sd else ""
    if not part.mean:
        # The number that stands there is the mean itself.
        score, spread = f"{score} {spread}".rstrip(), ""
    return " · ".join(filter(None, (score, " ".join(filter(None, (part.mean, spread, part.n))), part.note)))


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\g<0>", sanitize(text))

"""A table as GitHub Markdown."""

import re

from kdx.report.render.listings.listing import Listing
from kdx.report.render.listings.table import listings
from kdx.report.render.wording import LEVELS, caption, column_headers, sign, words
from kdx.report.selection.cells import Cell
from kdx.report.table.comparisons import Mark
from kdx.report.table.table import Table
from kdx.sanitize import sanitize

# Characters that open a construct inside a line: code, emphasis, links, HTML, entities, math, cells, and addresses that
# GitHub would turn into links.
_MARKUP = re.compile(r"[\\`*_\[\]<>|~$&@]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def to_markdown(table: Table, *, statistics: bool = False, full: bool = False) -> str:
    """The table with its title above and its caption below, followed by its listings; names come out as plain text.

    Args:
        statistics: see `kdx.report.render.listings.table.listings`.
        full: see `kdx.report.render.wording.caption`.
    """
    headers = [
        *map(plain, table.layout.row_factors),
        *(LEVELS.join(map(plain, header)) for header in column_headers(table.layout)),
    ]
    rules = [":---"] * len(table.layout.row_factors) + ["---:"] * len(table.layout.columns)
    lines = [headers, rules]
    layout, show_n = table.layout, table.layout.n is None
    for row, names in enumerate(layout.rows):
        places = ((row, column) for column in range(len(layout.columns)))
        bodies = (_body(layout.places.get(at), table.marks.get(at), show_n=show_n) for at in places)
        lines.append([*map(plain, names), *bodies])
    title = f"**{plain(table.layout.name)}**" + (f": {plain(table.layout.caption)}" if table.layout.caption else "")
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


def _body(cell: Cell | None, mark: Mark | None, *, show_n: bool) -> str:
    part = words(cell, show_n=show_n)
    spread = f" ± {part.sd}" if part.sd else ""
    score, mean = part.score, part.mean
    if part.marks_mean:
        mean = _marked(mean, mark)
    else:
        score = _marked(score, mark)
    if not mean:
        score, spread = f"{score}{spread}", ""  # the score is the mean itself
    return " · ".join(filter(None, (score, " ".join(filter(None, (f"{mean}{spread}", part.n))), part.note)))


def _marked(number: str, mark: Mark | None) -> str:
    return f"**{number}**" if mark is Mark.BEST else f"{number}{sign(mark)}"


def plain(text: str) -> str:
    """Escapes text so that Markdown shows it as it is."""
    return _MARKUP.sub(r"\\\g<0>", sanitize(text))

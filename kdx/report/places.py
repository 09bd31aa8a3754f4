"""Which place of a table each part of a text is about, in what kdx writes."""

import json
import re
from collections.abc import Iterator

from kdx.report.table.layout import Layout
from kdx.report.trace import columns, rows
from kdx.report.wording import LEVELS

Span = tuple[int, int, str]
"""Start and end in the text, and the row and column, such as `rbf, perplexity ↓`."""
_RULE = re.compile(r"\\midrule|\| :?-")
"""What stands between the head of a table and its rows."""
_REPEATED = re.compile(r"(?s)\\endfirsthead.*?\\endlastfoot")
"""The head and foot of the further pages of a longtable."""
_ACROSS = re.compile(r"\\multicolumn\{(\d+)\}")


def places_in_json(text: str) -> Iterator[Span]:
    """The objects of a table that are about one place, innermost first."""
    decoder = json.JSONDecoder()
    for match in reversed([*re.finditer(r'\{\s*"row": ', text)]):
        about, end = decoder.raw_decode(text, match.start())
        headers = (LEVELS.join(map(str, about[side].values())) for side in ("row", "column"))
        yield match.start(), end, ", ".join(filter(None, headers))


def places_in_text(text: str, layout: Layout) -> Iterator[Span]:
    """The places of a table of scores, which may continue below, in LaTeX or Markdown."""
    text = _REPEATED.sub(lambda match: " " * len(match[0]), text)
    names, headers, shown = len(layout.row_factors), columns(layout), 0
    head: list[int] = []
    left: Iterator[str] = iter(())
    before = row = ""
    for line in re.finditer(".+", text):
        if _RULE.match(line[0]):
            if shown >= len(headers):
                return  # what follows is a listing
            head = [at - names + shown for at, part in enumerate(_parts(before)) for _ in range(_across(part))]
            left, shown = iter(rows(layout)), head[-1] + 1
        elif head and len(parts := _parts(line[0])) > 1:
            # A line without a name says more about the row above it.
            row = next(left, "") if any(parts[:names]) else row
            start, column = line.start(), 0
            for part in parts if row else ():
                is_name = column < names or column >= len(head)
                yield start, start + len(part), row if is_name else f"{row}, {headers[head[column]]}"
                start, column = start + len(part) + len(" & "), column + _across(part)
        before = line[0]


def _parts(line: str) -> list[str]:
    return re.split(" [&|] ", line)


def _across(part: str) -> int:
    """The columns that a part of a line spans."""
    across = _ACROSS.match(part)
    return int(across[1]) if across else 1

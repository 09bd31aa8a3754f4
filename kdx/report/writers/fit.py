"""Fits the columns of a sheet into a width, counted in characters: texts are folded, and columns that find no room
continue below."""

import re
from collections.abc import Sequence

from kdx.grid.table_layout import NO_CHOICE
from kdx.report.sheet import Sheet, lined_up
from kdx.report.writers.widths import LINES, Column, Piece, cells, divided
from kdx.sanitize import sanitize

_STARTS_NUMBER = re.compile(r"[-+−<>≤≥±∞]*\s?\d")
_WORD = re.compile(r"^ ?\S+(?: [↑↓])?|\S+(?: [↑↓])?")


def are_words(texts: Sequence[str]) -> bool:
    """Whether a column holds words, or signs, and no number."""
    return not any(map(_STARTS_NUMBER.match, texts)) and not set("".join(texts)) <= {NO_CHOICE, " "}


def fit(sheet: Sheet, width: int) -> list[Piece]:
    """Divide the columns of a sheet into pieces within the width, each with the same names on its left."""
    return divided([_column(sheet, at) for at in range(len(sheet.headers))], sheet.names, width)


def _column(sheet: Sheet, at: int) -> Column:
    header = [sanitize(text) for text in sheet.levels(at)]
    if sheet.of_scores and at >= sheet.names:
        scores = sheet.scores(at)
        signs = any(score.mark for score in scores)
        whole = [
            1
            + len("  ".join(filter(None, (score.score, mean))))
            + len(beside)
            + (2 - score.aligned) * bool(beside)
            + signs
            for score, mean, beside in lined_up(scores)
        ]
        folded = [f" {word}" for word in header]
    else:
        texts = [sanitize(text) for text in sheet.texts(at)]
        numbers = [text for text in texts if at >= sheet.names and _STARTS_NUMBER.match(text)]
        whole = [cells(text) for text in numbers]
        folded = [header[-1], *set(texts).difference(numbers)]
    longest = max(map(cells, folded), default=0)
    words = [cells(word) for text in folded for word in _WORD.findall(text)]
    least = max(*words, *whole, -(-longest // LINES), 1)
    return Column(least, max(least, longest))

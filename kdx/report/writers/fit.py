"""Fits the columns of a sheet into a width, counted in characters: texts are folded, and columns that find no room
continue below."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from kdx.report.sheet import Sheet, beside_scores, means
from kdx.sanitize import sanitize

GAP = 2
"""Width between two columns; a column of scores has one more before it."""
_LINES = 2
"""Lines onto which a text is folded, or one more where its words do not divide evenly."""
_STARTS_NUMBER = re.compile(r"[-+−<>≤≥±∞]*\s?\d")
_WORD = re.compile(r"^ ?\S+(?: [↑↓])?|\S+(?: [↑↓])?")


@dataclass(frozen=True)
class Column:
    """The widths that a column can have."""

    least: int
    """Width of the widest word, or of the widest text that is never broken, such as a number."""
    most: int
    """Width of the widest text."""


@dataclass(frozen=True)
class Piece:
    """Columns that stand side by side: the names, and others to the right of them."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]


def are_words(texts: Sequence[str]) -> bool:
    """Whether a column holds words and no number."""
    return not any(map(_STARTS_NUMBER.match, texts)) and any(map(str.isalpha, "".join(texts)))


def fit(sheet: Sheet, width: int) -> list[Piece]:
    """Divide the columns of a sheet into pieces within the width, each with the same names on its left."""
    names = sheet.names
    columns = [_column(sheet, at) for at in range(len(sheet.headers))]
    widest = max((column.least + GAP for column in columns[names:]), default=0)
    room = max(width - widest, width // 2) - GAP * (names - 1)
    # Where words do not suffice to make the names fit, those of the widest are broken.
    while sum(column.least for column in columns[:names]) > max(room, names):
        at = max(range(names), key=lambda at: columns[at].least)
        columns[at] = replace(columns[at], least=columns[at].least - 1)
    used = sum(column.least + GAP for column in columns[:names])
    pieces: list[list[int]] = []
    for at in range(names, len(columns)):
        least = min(columns[at].least, max(width - used, 1))
        columns[at] = Column(least, max(least, columns[at].most))
        if pieces and used + sum(columns[index].least + GAP for index in pieces[-1]) + least <= width:
            pieces[-1].append(at)
        else:
            pieces.append([at])
    return [_widened([*range(names), *piece], columns, width) for piece in pieces or [[]]]


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
            for score, mean, beside in zip(scores, means(scores), beside_scores(scores), strict=True)
        ]
        folded = [f" {word}" for word in header]
    else:
        texts = [sanitize(text) for text in sheet.texts(at)]
        numbers = [text for text in texts if at >= sheet.names and _STARTS_NUMBER.match(text)]
        whole = [cell_len(text) for text in numbers]
        folded = [header[-1], *set(texts).difference(numbers)]
    longest = max(map(cell_len, folded), default=0)
    words = [cell_len(word) for text in folded for word in _WORD.findall(text)]
    least = max(*words, *whole, -(-longest // _LINES), 1)
    return Column(least, max(least, longest))


def _widened(shown: Sequence[int], columns: Sequence[Column], width: int) -> Piece:
    """The piece with the rest of the width given to the columns that need the least of it to stand unfolded."""
    widths = {at: columns[at].least for at in shown}
    room = width - sum(widths.values()) - GAP * (len(shown) - 1)
    for at in sorted(shown, key=lambda at: columns[at].most - columns[at].least):
        more = max(0, min(columns[at].most - columns[at].least, room))
        widths[at] += more
        room -= more
    return Piece(tuple(widths), tuple(widths.values()))

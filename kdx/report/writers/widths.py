"""Fits columns and texts into a width, counted in characters: no word, hash or command is broken."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

GAP = 2
"""Width between two columns; a column of scores has one more before it."""
LINES = 2
"""Lines onto which a text is folded, or one more where its words do not divide evenly."""
_CUT = "…"
_QUOTED = r"'[^']*'|\"[^\"]*\""
_COMMAND = rf"(?:^|(?<=: )(?<!hint: ))kdx (?:{_QUOTED}|,(?! )|[^;,'\"])+[;,]?"
"""A command to copy: it begins a line or stands behind a colon, and ends with the text or before the next clause."""
_PART = re.compile(rf"\s*(?:{_COMMAND}|kdx [a-z]+(?: [A-Z]+\b)*|\S+)")
_SHELL_WORD = re.compile(rf"(?:-[\w-]+ (?!-))?(?:{_QUOTED}|[^\s'\"])+")
"""A word of a command, or an option with its value."""
_INDENT = 4
"""Width before the other lines of a text, beside what is before its first."""
_HANGING = re.compile(r" *(?:\S+ )*?\S+ {2,}(?=\S)")
"""What stands before the text of a line, such as the name of a fact; its other lines begin below the text."""


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


def cells(text: str) -> int:
    """Return the width of a text on a terminal."""
    if text.isascii():
        return len(text)
    # Help does without rich.
    from rich.cells import cell_len

    return cell_len(text)


def divided(columns: Sequence[Column], names: int, width: int) -> list[Piece]:
    """Divide columns into pieces within the width, each with the same names on its left."""
    columns = list(columns)
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


def _widened(shown: Sequence[int], columns: Sequence[Column], width: int) -> Piece:
    """The piece with the rest of the width given to the columns that need the least of it to stand unfolded."""
    widths = {at: columns[at].least for at in shown}
    room = width - sum(widths.values()) - GAP * (len(shown) - 1)
    for at in sorted(shown, key=lambda at: columns[at].most - columns[at].least):
        more = max(0, min(columns[at].most - columns[at].least, room))
        widths[at] += more
        room -= more
    return Piece(tuple(widths), tuple(widths.values()))


def shortened(text: str, width: int) -> str:
    """Return a text without some words in its middle, if it is wider; the first and the last word stay."""
    words = text.split(" ")
    before, after = (len(words) + 1) // 2, len(words) // 2
    while cells(text) > width and (before > 1 or after > 1):
        # The end says more than the middle, such as the number of an equation.
        before, after = (before - 1, after) if before >= after and before > 1 else (before, after - 1)
        text = " ".join([*words[:before], _CUT, *words[len(words) - after :]])
    return text


def folded(text: str, width: int | None) -> Iterator[str]:
    """Yield the lines of a text, each within the width if its words and commands are.

    A command that is wider than a line is continued as a shell reads it.

    Args:
        width: None: the lines stay as they are.
    """
    for line in text.split("\n"):
        if width is None or cells(line) <= width:
            yield line
        else:
            yield from _folded(line, width)


def _folded(line: str, width: int) -> Iterator[str]:
    start = _HANGING.match(line)
    indent = len(start[0]) if start else len(line) - len(line.lstrip()) + _INDENT
    blank = " " * (indent if indent <= width // 2 else _INDENT)
    shown = ""
    for part in _PART.findall(line):
        if shown.strip() and cells(shown + part) > width:
            yield shown
            part = part.lstrip()
            shown = blank if cells(blank + part) <= width else " " * _INDENT
        shown += part
        if cells(shown) > width and part.lstrip().startswith("kdx "):
            *lines, shown = _continued(shown, width, blank)
            yield from lines
    yield shown


def _continued(command: str, width: int, blank: str) -> Iterator[str]:
    """Yield the lines of a command, each of which but the last ends in a backslash."""
    shown = command[: len(command) - len(command.lstrip())]
    for word in _SHELL_WORD.findall(command):
        if shown.strip() and cells(f"{shown} {word} \\") > width:
            yield f"{shown} \\"
            shown = f"{blank}  {word}"
        else:
            shown += f" {word}" if shown.strip() else word
    yield shown

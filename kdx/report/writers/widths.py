"""Fits columns and texts into a width, counted in characters: no word, hash or command is broken."""

import re
from collections.abc import Iterator, Sequence

GAP = 2
"""Width between two columns; a column of scores has one more before it."""
LINES = 2
"""Lines onto which a text is folded, or one more where its words do not divide evenly."""
Widths = tuple[int, int]
"""The widths that a column can have: at least that of its widest word, or text that is never broken, such as a number;
at most that of its widest text."""
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


def cells(text: str) -> int:
    """Return the width of a text on a terminal."""
    if text.isascii():
        return len(text)
    # Help does without rich.
    from rich.cells import cell_len

    return cell_len(text)


def divided(columns: Sequence[Widths], names: int, width: int) -> list[dict[int, int]]:
    """Divide columns into pieces within the width, each with the same names on its left: column → its width."""
    least, most = [least for least, _ in columns], [most for _, most in columns]
    widest = max((least + GAP for least in least[names:]), default=0)
    room = max(width - widest, width // 2) - GAP * (names - 1)
    # Where words do not suffice to make the names fit, those of the widest are broken.
    while sum(least[:names]) > max(room, names):
        least[max(range(names), key=least.__getitem__)] -= 1
    used = sum(least[:names]) + GAP * names
    pieces: list[list[int]] = []
    for at in range(names, len(columns)):
        least[at] = min(least[at], max(width - used, 1))
        if pieces and used + sum(least[index] + GAP for index in pieces[-1]) + least[at] <= width:
            pieces[-1].append(at)
        else:
            pieces.append([at])
    divisions = []
    for piece in pieces or [[]]:
        widths = {at: least[at] for at in (*range(names), *piece)}
        room = width - sum(widths.values()) - GAP * (len(widths) - 1)
        # The rest of the width goes to the columns that need the least of it to stand unfolded.
        for at in sorted(widths, key=lambda at: most[at] - least[at]):
            more = max(0, min(most[at] - least[at], room))
            widths[at] += more
            room -= more
        divisions.append(widths)
    return divisions


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

"""Fits columns of words and numbers into a width: texts are folded, and columns without room continue below.

The unit is the caller's: columns of a terminal, or points on paper.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

Measure = Callable[[str], float]
"""A function from a text to its width."""

_LINES = 3
"""A text is folded onto at most so many lines before columns continue below."""
_CLOSE = 0.5
"""Precision of a search for a width."""
_STARTS_NUMBER = re.compile(r"[-+−<>≤≥±∞]*\s?\d")
_NUMBER = re.compile(r"(?:[-+−–<>≤≥±∞\s\d.,:%()/]|\de|to\b)*")
# A sign that stands alone, such as an arrow or a slash, and a number stay with the word before them; the next of a list
# does not.
_WORD = re.compile(r"\S+(?:(?<!,)\s+(?:[^\w\s]+|\d[\d.,]*)(?!\S))*\s*")
# A slash between two words, not the one within 1/3.
_AFTER_SLASH = re.compile(r"(?<=/)(?=[^\W\d])")
_AFTER_SIGN = re.compile(r"(?<=[-+/._])")


@dataclass(frozen=True)
class Column:
    """The widths that a column can have."""

    lines: tuple[float, ...]
    """The width with texts on one line, on at most two, and so on."""
    word: float
    """The width of the widest word; a narrower column breaks words."""
    whole: float
    """The width of the widest text that is never broken, such as a number."""

    def at_least(self, width: float) -> "Column":
        """The same column with one more text, so wide and never broken."""
        return Column(tuple(max(one, width) for one in self.lines), max(self.word, width), max(self.whole, width))


@dataclass(frozen=True)
class Piece:
    """Columns that stand side by side to the right of the names."""

    columns: range
    widths: tuple[float, ...]
    """Widths of the names and of these columns."""


def column(folded: Iterable[str], whole: Iterable[str], measure: Measure) -> Column:
    """The column of these texts, of which some may be folded and others stay whole."""
    longest = sorted(set(folded), key=measure, reverse=True)
    word = max((measure(part) for text in longest for part in _parts(text)), default=0)
    widths = [max(map(measure, longest), default=0)]
    for lines in range(2, _LINES + 1):
        width = word
        for text in longest:
            if len(fold(text, width, measure)) > lines:
                width = _narrowest(text, width, lines, measure)
        widths.append(width)
    return Column(tuple(widths), word, 0).at_least(max(map(measure, whole), default=0))


def of_listing(header: str, texts: Sequence[str], measure: Measure, *, names: bool) -> Column:
    """The column of a listing: numbers, intervals, shares and the like stay whole unless they are names."""
    whole = [] if names else [text for text in texts if _STARTS_NUMBER.match(text) and _NUMBER.fullmatch(text)]
    return column([header, *set(texts).difference(whole)], whole, measure)


def are_words(texts: Sequence[str]) -> bool:
    """Whether a column holds words and no number."""
    return not any(map(_STARTS_NUMBER.match, texts)) and any(map(str.isalpha, "".join(texts)))


def fit(columns: Sequence[Column], names: int, width: float, gap: float) -> list[Piece]:
    """Divides columns into pieces within the width, each with the same names on its left.

    Args:
        names: number of columns on the left that every piece repeats; without further columns they are the only piece.
        gap: width between two columns.
    """
    pieces: list[tuple[list[float], list[int]]] = []
    for index in range(names, len(columns)):
        *left, own = _least([*columns[:names], columns[index]], width, gap)
        widths, its = pieces[-1] if pieces else ([], [])
        if its and widths[:names] == left and sum(widths) + own + gap * len(widths) <= width:
            widths.append(own)
            its.append(index)
        else:
            pieces.append(([*left, own], [index]))
    if not pieces:
        pieces.append((_least(columns, width, gap), []))
    return [
        Piece(
            range(its[0] - names, its[-1] + 1 - names) if its else range(0),
            _widened(least, [columns[index] for index in (*range(names), *its)], width - gap * (len(least) - 1)),
        )
        for least, its in pieces
    ]


def _widened(least: Sequence[float], columns: Sequence[Column], room: float) -> tuple[float, ...]:
    """The widths of a piece's columns, with texts on as few lines as there is room for."""
    low = [[one.lines[lines] for one in columns] for lines in range(_LINES)]
    found = list(next((widths for widths in low if sum(widths) <= room), least))
    room -= sum(found)
    # The rest of the room unfolds as many columns as possible.
    for at in sorted(range(len(found)), key=lambda at: low[0][at] - found[at]):
        more = max(0.0, min(low[0][at] - found[at], room))
        found[at] += more
        room -= more
    return tuple(found)


def fold(text: str, width: float, measure: Measure) -> list[str]:
    """The text on lines of that width, broken at spaces and after slashes, and inside a word only if it must be."""
    lines = [""]
    for part in _parts(text, blanks=True):
        if measure(f"{lines[-1]}{part}".rstrip()) <= width:
            lines[-1] += part
        elif measure(part.rstrip()) <= width:
            lines.append(part)
        else:
            lines += _broken(part, width, measure)
    return [line.rstrip() for line in lines if line.strip()] or [""]


def breakable(text: str, width: float, measure: Measure) -> Iterator[str]:
    """The parts of the text between the places where it may be broken to fit the width; a part keeps its last blank."""
    for part in _parts(text, blanks=True):
        if measure(part.rstrip()) <= width:
            yield part
        else:
            for one in _AFTER_SIGN.split(part):
                yield from [one] if measure(one.rstrip()) <= width else one


def _parts(text: str, *, blanks: bool = False) -> Iterator[str]:
    """The parts of a text that are broken only if they must be, with the blank after each if asked for."""
    for word in _WORD.findall(text):
        *front, last = _AFTER_SLASH.split(word)
        yield from (*front, last if blanks else last.rstrip())


def _broken(word: str, width: float, measure: Measure) -> list[str]:
    """A word on several lines, broken after its signs or, where that is not enough, anywhere."""
    lines = [""]
    for part in breakable(word, width, measure):
        if lines[-1] and measure(f"{lines[-1]}{part}".rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return lines


def _narrowest(text: str, low: float, lines: int, measure: Measure) -> float:
    """The smallest width above `low` that folds the text onto at most so many lines."""
    high = measure(text)
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if len(fold(text, middle, measure)) <= lines else (middle, high)
    return max(map(measure, fold(text, high, measure)))


def _least(columns: Sequence[Column], width: float, gap: float) -> list[float]:
    """The smallest width of each column: with folded texts, else as wide as their words, else as the width demands."""
    room = width - gap * (len(columns) - 1)
    for least in ([one.lines[-1] for one in columns], [one.word for one in columns]):
        if sum(least) <= room:
            return least
    narrow, wide = max(1.0, room / (2 * len(columns))), max(width, 1.0)
    while wide - narrow > _CLOSE:
        middle = (narrow + wide) / 2
        narrow, wide = (middle, wide) if sum(_cut(columns, middle)) <= room else (narrow, middle)
    return _cut(columns, narrow)


def _cut(columns: Sequence[Column], most: float) -> list[float]:
    """Widths with words cut to `most`; texts that are never broken keep theirs."""
    return [max(one.whole, min(one.word, most)) for one in columns]

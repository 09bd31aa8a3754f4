"""The frame of a plot on the terminal: its axes and their names, within a width."""

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from kdx.report.figures.scale import Scale, share

WIDEST = 100
"""Columns of a plot at most, where the console has room."""
_NARROWEST = 20
"""Columns of a plot at least."""


def cropped(lines: Iterable[str]) -> Iterator[Text]:
    """Lines that are cut where the console is too narrow."""
    return (Text(line.rstrip(), no_wrap=True, overflow="crop") for line in lines)


def plot_columns(width: int, ends: tuple[str, str]) -> int:
    """Columns of a plot beside the names of its axis."""
    return max(width - max(map(len, ends)) - 2, _NARROWEST)


def plot_row(value: float, span: Scale, height: int) -> int:
    """The row of a plot, from the top."""
    place = min(max(share(value, span), 0.0), 1.0)  # rounding may lead a mean out of the range
    return height - 1 - round((height - 1) * place)


def framed(grid: Sequence[str], ends: tuple[str, str], below: str) -> Iterator[str]:
    """A plot with its axes, the ends of the axis of values beside it, and a line below."""
    names = max(map(len, ends))
    for number, line in enumerate(grid):
        # A single value stands at the foot.
        name = ends[0] if number == len(grid) - 1 else ends[1] if number == 0 and ends[0] != ends[1] else ""
        yield f"{name:>{names}} │{line}"
    yield f"{'':{names}} └{'─' * len(grid[0])}"
    yield f"{'':{names}}  {below}"

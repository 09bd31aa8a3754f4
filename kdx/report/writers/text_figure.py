"""Scores against the length that an evaluation read, on the terminal: a line for each length, no meaning by colour."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.text import Text

from kdx.report.statistics.metric import Metric
from kdx.report.wording import rounded
from kdx.report.writers.fit import fold
from kdx.report.writers.over_length import AXIS, Series
from kdx.report.writers.scale import is_logarithmic, scale, share
from kdx.sanitize import sanitize

_WIDEST = 80
"""The figure is no wider than this, where the console has room."""
_NARROWEST = 12
"""The axis is no shorter than this, where the console has room."""
_POINT, _LOW, _BAND, _HIGH = "●├─┤"
_LENGTH = "length"


class TextFigure:
    """A figure that rich prints: its groups one below the other, on one horizontal axis of scores."""

    def __init__(self, title: str, metric: Metric, series: Sequence[Series]) -> None:
        self.title = title
        self.metric = metric
        self.series = series

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The title, the groups, the axis with its two ends, and what the signs mean."""
        width = min(options.max_width, _WIDEST)
        yield Text(f"{sanitize(self.title)}: {self.metric} against the length", style="bold")
        for line in self._lines(width):
            yield Text(line.rstrip(), no_wrap=True, overflow="crop")
        yield Constrain(Text(self._note), width)

    @property
    def _note(self) -> str:
        bands = any(low < high for one in self.series for _, _, low, high in one.points)
        band = f"; {_LOW}{_BAND}{_HIGH}: from the lowest to the highest of all seeds" if bands else ""
        axis = ". The axis is logarithmic" if is_logarithmic(self._span) else ""
        return f"Length: {AXIS}. {_POINT}: the number in the table{band}{axis}."

    @property
    def _span(self) -> tuple[float, float]:
        span = scale([value for one in self.series for _, *values in one.points for value in values])
        assert span is not None, "every series has points, and their values are finite"
        return span

    def _lines(self, width: int) -> list[str]:
        lengths = max(len(_LENGTH), *(len(f"{at:.0f}") for one in self.series for at, *_ in one.points))
        groups = [sanitize(one.group) for one in self.series]
        # A blank before the lengths, and the axis with a blank on either side of it.
        room = width - lengths - 4
        names = min(max(map(cell_len, groups)), max(room - _NARROWEST, room // 2, 1))
        axis = max(room - names, 1)
        lines = [f"{'':{names}} {_LENGTH:>{lengths}}"]
        for one, group in zip(self.series, groups, strict=True):
            folded = fold(group, names, cell_len)
            for row in range(max(len(folded), len(one.points))):
                name = folded[row] if row < len(folded) else ""
                at, *values = one.points[row] if row < len(one.points) else ("",)
                length = f"{at:.0f}" if values else ""
                drawn = self._drawn(values, axis) if values else ""
                lines.append(f"{name}{' ' * (names - cell_len(name))} {length:>{lengths}} │ {drawn}")
        low, high = (rounded(end, self.metric.name) for end in self._span)
        before = " " * (names + lengths + 2)
        lines.append(f"{before}└{_BAND * (axis + 1)}")
        ends = f"{low}{high:>{max(axis - len(low), len(high) + 1)}}" if low != high else low
        return [*lines, f"{before}  {ends}"]

    def _drawn(self, values: Sequence[float], axis: int) -> str:
        """The band and the point of (score, lowest, highest)."""
        point, low, high = (round((axis - 1) * share(value, self._span)) for value in values)
        line = [" "] * axis
        line[low : high + 1] = _BAND * (high + 1 - low)
        line[low], line[high] = _LOW, _HIGH
        line[point] = _POINT
        return "".join(line)

"""Scores of trials against a parameter on the terminal; nothing is said by colour alone."""

from math import log

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from kdx.report.sheets.searches import value_in_words
from kdx.report.statistics.metric import Metric
from kdx.report.writers.fit import fold
from kdx.report.writers.over_parameter import OverParameter
from kdx.report.writers.scale import Scale, is_logarithmic, scale, share
from kdx.sanitize import sanitize

_WIDEST, _HEIGHT = 100, 12
"""Columns of the figure at most, where the console has room, and rows of its plot."""
_NARROWEST = 20
"""Columns of the plot at least."""
_TRIAL, _SEVERAL, _BEST = "·*●"


class TextTrials:
    """A figure that rich prints: a sign for each trial that completed, the score upwards, the parameter across."""

    def __init__(self, plot: OverParameter, metric: Metric) -> None:
        self.plot = plot
        self.metric = metric

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What is drawn, the plot with its axes, and what the signs mean."""
        yield Text(sanitize(f"{self.metric} against {self.plot.name}"), style="bold")
        for line in self._lines(min(options.max_width, _WIDEST)):
            yield Text(line.rstrip(), no_wrap=True, overflow="crop")

    def _lines(self, width: int) -> list[str]:
        span = scale([one.score for one in self.plot.points])
        assert span is not None, "every plot has points, and their scores are finite"
        ends = [value_in_words(end) for end in span]
        names = max(map(len, ends))
        columns = max(width - names - 2, _NARROWEST)
        lines = []
        for number, line in enumerate(self._grid(span, columns)):
            name = ends[0] if number == _HEIGHT - 1 else ends[1] if number == 0 and ends[0] != ends[1] else ""
            lines.append(f"{name:>{names}} │{line}")
        lines.append(f"{'':{names}} └{'─' * columns}")
        lines.append(f"{'':{names}}  {self._across(columns)}")
        notes = [f"{_TRIAL} a trial, {_SEVERAL} several, {_BEST} the best"]
        notes += ["the parameter's axis is logarithmic"] if self.plot.logarithmic else []
        notes += ["the axis of scores is logarithmic"] if is_logarithmic(span) else []
        return [*lines, *fold(f"{'; '.join(notes)}.", width, cell_len)]

    def _grid(self, span: Scale, columns: int) -> list[str]:
        grid = [[" "] * columns for _ in range(_HEIGHT)]
        for one in sorted(self.plot.points, key=lambda point: point.best):
            row = _HEIGHT - 1 - round((_HEIGHT - 1) * min(max(share(one.score, span), 0.0), 1.0))
            column = round((columns - 1) * self._place(one.at))
            grid[row][column] = _BEST if one.best else _TRIAL if grid[row][column] == " " else _SEVERAL
        return ["".join(row) for row in grid]

    def _place(self, at: float) -> float:
        """How far along the axis a value lies, from 0 to 1."""
        low, high = self.plot.span
        if not low < high:
            return 0.0
        if self.plot.logarithmic:
            at, low, high = log(at), log(low), log(high)
        return min(max((at - low) / (high - low), 0.0), 1.0)

    def _across(self, columns: int) -> str:
        """The two ends of the parameter's axis, or the values of a list, each below its signs."""
        words = self.plot.words or tuple(map(value_in_words, self.plot.span))
        line = [" "] * columns
        free = 0
        for place, word in enumerate(map(sanitize, words)):
            middle = round((columns - 1) * place / max(len(words) - 1, 1))
            start = min(max(middle - len(word) // 2, 0), max(columns - len(word), 0))
            if start >= free:
                line[start : start + len(word)] = word
                free = start + len(word) + 1
        return "".join(line)[:columns]

"""The charts of the page as SVG, from Vega-Lite; their colours are custom properties of the page's style."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from kdx.report.figures import vega
from kdx.report.figures.plot import Plot, scale
from kdx.report.figures.vega import AttentionMap, attention_chart, grouped, scaled, to_svg
from kdx.sanitize import sanitize

CURVE, SCATTER, OVERLAY = (230, 110), (300, 260), (480, 240)
"""Width and height of one cell's curve, of a scatter, and of a chart of several curves; in pixels."""
_COLOURS, _SHAPES = (
    [f"var(--series-{number})" for number in range(6)],
    ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"],
)
"""Colours and shapes of the groups of a scatter, in turn; their numbers share no divisor, so pairs repeat late."""
_LONGEST, _WIDEST = 66, 6.2
"""Most letters of the name of a row, and the average width of one in pixels."""
_LEAST = 1e-290
"""Vega counts the ticks of a shorter axis to infinity."""
_ROW = 22
"""Height of a row of intervals, in pixels."""
_CONFIG: dict[str, Any] = {
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "titleFontWeight": "normal",
        "titleFontSize": 11,
        "labelFontSize": 11,
        "gridColor": "var(--rule)",
        "domainColor": "var(--rule)",
        "tickColor": "var(--rule)",
        "labelOverlap": True,
        "labelFlush": False,
        "titlePadding": 10,
    },
    "legend": {"labelColor": "var(--ink)", "labelFontSize": 11, "symbolSize": 50},
    "title": {"color": "var(--ink)", "fontSize": 12, "fontWeight": "normal", "anchor": "start", "offset": 8},
}
_LINK = {"href": {"field": "href"}, "description": {"field": "label"}}


@dataclass(frozen=True, slots=True)
class Mark:
    """A run or a cell with two numbers, or with one and its interval."""

    label: str
    """What the mark stands for, in words."""
    href: str
    """The link to the details on the page, such as `#run-12`."""
    filled: bool
    """Whether the run is the selected one, the cell the best, or the difference significant."""
    x: float
    y: float = 0.0
    low: float = 0.0
    """Lower bound of the interval around x; `high` is the upper bound."""
    high: float = 0.0
    group: str = ""
    """The group that a scatter shows by colour and shape, or the name of the row."""
    colour: str = "var(--accent)"
    at: tuple[float, ...] = ()
    """Where else a bar stands in its row, such as at a margin."""


def plotted(plot: Plot, size: tuple[int, int] = CURVE) -> str:
    """Draw a plot; a single series has the accent's colour."""
    names = list(dict.fromkeys(sanitize(series.name) for series in plot.series))
    colours = _COLOURS if len(names) > 1 else ["var(--accent)"]
    return to_svg(vega.chart(plot, size, names, colours, "var(--accent)"), _CONFIG)


def mapped(drawn: AttentionMap) -> str:
    """Draw a map of attention."""
    return to_svg(attention_chart(drawn, "var(--accent)"), _CONFIG)


def scatter(marks: Sequence[Mark], x: str, y: str) -> str:
    """Draw runs by two scores; groups differ by colour and shape, and selected runs are filled."""
    encoding: dict[str, Any] = {}
    for field, title in (("x", x), ("y", y)):
        # Whole pixels make a smaller file and look the same.
        span = scale([getattr(mark, field) for mark in marks]) or (0.0, 1.0)
        axis = {**scaled(span), "round": True}
        encoding[field] = {"field": field, "type": "quantitative", "title": sanitize(title), "scale": axis}
        encoding[field]["axis"] = {"tickCount": 5}
    names = list(dict.fromkeys(sanitize(mark.group) for mark in marks))
    encoding |= {**grouped(names, "group", color=_COLOURS, shape=_SHAPES), **_LINK}
    layers = [
        {
            "mark": {"type": "point", "filled": filled, "size": size, "opacity": opacity},
            "data": {"values": [_linked(mark) for mark in marks if mark.filled is filled]},
            "encoding": encoding,
        }
        for filled, size, opacity in ((False, 40, 0.8), (True, 60, 1))
    ]
    width, height = SCATTER
    return to_svg({"width": width, "height": height, "layer": layers}, _CONFIG)


def forest(marks: Sequence[Mark], title: str, *, zero: float = 0.0) -> str:
    """Draw differences with their intervals, one a row, in the given order; empty where no axis has room for them.

    Args:
        zero: no difference; 1 for ratios, of which less is better, so that their axis runs to the left.
    """
    low, high = scale([zero, *(bound for mark in marks for bound in (mark.low, mark.high, *mark.at))]) or (0.0, 0.0)
    if not _LEAST < high - low < inf:
        return ""
    reverse = {**scaled((low, high)), "reverse": True} if zero else {}
    bars = [{"group": sanitize(mark.group), "at": at} for mark in marks for at in mark.at]
    y, layers = _intervals(marks, title, reverse)
    tick = {"type": "tick", "color": "var(--ink)", "thickness": 1.5, "size": 12, "aria": False}
    at = {"field": "at", "type": "quantitative"}
    rule = {"type": "rule", "color": "var(--muted)", "aria": False}
    below = [{"data": {"values": [{}]}, "mark": rule, "encoding": {"x": {"datum": zero}}}]
    below += [{"data": {"values": bars}, "mark": tick, "encoding": {"x": at, "y": y}}] if bars else []
    return to_svg({"width": 380, "height": {"step": _ROW}, "layer": [*below, *layers]}, _CONFIG)


def dots(cells: Sequence[Mark], runs: Sequence[Mark], title: str) -> str:
    """Draw the score of each run, and the mean of each cell with its interval; a row for each group of the cells.

    Args:
        cells: a mean each; the best is filled.
        runs: selected ones are filled.
    """
    values = [mark.x for mark in runs]
    span = scale([*values, *(bound for mark in cells for bound in (mark.low, mark.high))]) or (0.0, 1.0)
    y, layers = _intervals(cells, title, scaled(span), shape="diamond")
    points = [
        {
            "data": {"values": [_linked(mark) for mark in runs if mark.filled is filled]},
            "mark": {"type": "point", "filled": filled, "size": 50, "opacity": 0.8, "color": colour},
            "encoding": {"y": y, "x": {"field": "x", "type": "quantitative"}, **_LINK},
        }
        for filled, colour in ((False, "var(--point)"), (True, "var(--ink)"))
    ]
    return to_svg({"width": 250, "height": {"step": _ROW}, "layer": [layers[0], *points, layers[1]]}, _CONFIG)


def _intervals(
    marks: Sequence[Mark], title: str, across: Mapping[str, Any], shape: str = "circle"
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The vertical axis with the groups, and the layers of the intervals and of the values within them."""
    values = [{**_linked(mark), "low": mark.low, "high": mark.high, "filled": mark.filled} for mark in marks]
    # The reader's font may be wider than the one that the labels are measured with here.
    names = list(dict.fromkeys(value["group"] for value in values))
    shown = {name: _shortened(name) for name in names}
    room = _WIDEST * max(map(len, shown.values()))
    # JSON is a literal of Vega too.
    words = f"{json.dumps(shown, ensure_ascii=False)}[datum.value]"
    axis = {
        "labelLimit": 0,
        "labelExpr": words,
        "minExtent": room,
        "labelColor": "var(--ink)",
        "ticks": False,
        "domain": False,
    }
    y: dict[str, Any] = {"field": "group", "type": "nominal", "sort": None, "title": None}
    y |= {"scale": {"domain": names}, "axis": {**axis, "labelPadding": 8}}
    # More ticks have labels that run into each other where the reader's font is wider.
    ticks = {"tickCount": 5, "format": ".4~g"}
    x = {"field": "x", "type": "quantitative", "title": sanitize(title), "axis": ticks, "scale": across}
    colour = {"field": "colour", "type": "nominal", "scale": None}
    fill = {"condition": {"test": "datum.filled", **colour}, "value": "var(--paper)"}
    ends = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
    point = {"type": "point", "shape": shape, "strokeWidth": 1.5, "size": 45, "opacity": 1}
    return y, [
        {
            "data": {"values": values},
            "mark": {"type": "rule", "strokeWidth": 1.5, "aria": False},
            "encoding": {"y": y, **ends, "color": colour},
        },
        {
            "data": {"values": values},
            "mark": point,
            "encoding": {"y": y, "x": x, "stroke": colour, "fill": fill, **_LINK},
        },
    ]


def _shortened(name: str) -> str:
    """The name of a row in its room: Vega would cut a letter outside the basic plane in two, which it cannot draw."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[-_LONGEST // 2 + 1 :]}"


def _linked(mark: Mark) -> dict[str, Any]:
    texts = {name: sanitize(getattr(mark, name)) for name in ("label", "group", "href", "colour")}
    return {"x": mark.x, "y": mark.y, **texts}

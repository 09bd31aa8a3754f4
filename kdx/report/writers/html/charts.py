"""The charts of the page as SVG, from Vega-Lite; their colours are custom properties of the page's style."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.report.figures import vega
from kdx.report.figures.plot import Plot, scale
from kdx.report.figures.vega import grouped, scaled, to_svg
from kdx.sanitize import sanitize

CURVE, SCATTER, OVERLAY = (230, 110), (300, 260), (480, 240)
"""Width and height of one cell's curve, of a scatter, and of a chart of several curves; in pixels."""
_COLOURS, _SHAPES = (
    [f"var(--series-{number})" for number in range(6)],
    ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"],
)
"""Colours and shapes of the groups of a scatter, in turn; their numbers share no divisor, so pairs repeat late."""
_LONGEST, _WIDEST = 420, 6.2
"""Greatest width of a forest's labels, and the average width of one of their letters; in pixels."""
_ROW = 20
"""Height of a row of the forest, in pixels."""
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
    """A run with its two scores, or a cell with its difference from another."""

    label: str
    """What the mark stands for, in words."""
    href: str
    """The link to the details on the page, such as `#run-12`."""
    filled: bool
    """Whether the run is the selected one, or the difference is significant."""
    x: float
    y: float = 0.0
    low: float = 0.0
    """Lower bound of the interval around x; `high` is the upper bound."""
    high: float = 0.0
    group: str = ""
    """The group that a scatter shows by colour and shape."""


def plotted(plot: Plot, size: tuple[int, int] = CURVE) -> str:
    """Draw a plot; a single series has the accent's colour."""
    names = list(dict.fromkeys(sanitize(series.name) for series in plot.series))
    colours = _COLOURS if len(names) > 1 else ["var(--accent)"]
    return to_svg(vega.chart(plot, size, names, colours, "var(--accent)"), _CONFIG)


def scatter(marks: Sequence[Mark], x: str, y: str) -> str:
    """Draw runs by two scores; groups differ by colour and shape, and selected runs are filled."""
    encoding: dict[str, Any] = {}
    for field, title in (("x", x), ("y", y)):
        # Whole pixels make a smaller file and look the same.
        span = scale([getattr(mark, field) for mark in marks]) or (0.0, 1.0)
        axis = {**scaled(span), "round": True}
        encoding[field] = {"field": field, "type": "quantitative", "title": sanitize(title), "scale": axis}
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


def forest(marks: Sequence[Mark], title: str, *, ratios: bool = False) -> str:
    """Draw differences with their intervals, one a row, in the given order; significant ones are filled.

    Args:
        ratios: whether they are ratios, of which less is better: the axis then runs to the left.
    """
    rows = [{**_linked(mark), "low": mark.low, "high": mark.high, "filled": mark.filled} for mark in marks]
    # The reader's font may be wider than the one that the labels are measured with here.
    room = min(_LONGEST, _WIDEST * max(len(row["label"]) for row in rows))
    axis = {"labelLimit": _LONGEST, "minExtent": room, "labelColor": "var(--ink)", "ticks": False, "domain": False}
    y = {"field": "label", "type": "nominal", "sort": None, "title": None, "axis": {**axis, "labelPadding": 8}}
    # More ticks have labels that run into each other where the reader's font is wider.
    ticks = {"tickCount": 5, "format": ".3~g"}
    span = scale([1.0, *(bound for mark in marks for bound in (mark.low, mark.high))]) if ratios else None
    reversed_scale = {**scaled(span), "reverse": True} if span else {}
    x = {"field": "x", "type": "quantitative", "title": sanitize(title), "axis": ticks, "scale": reversed_scale}
    fill = {"condition": {"test": "datum.filled", "value": "var(--accent)"}, "value": "var(--paper)"}
    layers = [
        {
            "data": {"values": [{}]},
            "mark": {"type": "rule", "color": "var(--muted)"},
            "encoding": {"x": {"datum": int(ratios)}},
        },
        {
            "mark": {"type": "rule", "color": "var(--accent)", "strokeWidth": 1.5, "aria": False},
            "encoding": {"y": y, "x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "stroke": "var(--accent)", "strokeWidth": 1.5, "size": 45, "opacity": 1},
            "encoding": {"y": y, "x": x, "fill": fill, **_LINK},
        },
    ]
    chart = {"data": {"values": rows}, "width": 380, "height": {"step": _ROW}, "layer": layers}
    return to_svg(chart, _CONFIG)


def _linked(mark: Mark) -> Mapping[str, Any]:
    label, group = sanitize(mark.label), sanitize(mark.group)
    return {"x": mark.x, "y": mark.y, "label": label, "href": mark.href, "group": group}

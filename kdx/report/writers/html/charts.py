"""Plots as SVG, from Vega-Lite; their colours are custom properties of the page's style."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import vl_convert

from kdx.report.figures.scale import Scale, is_logarithmic, scale, share
from kdx.report.figures.series import OverParameter, Series, TrialPoint
from kdx.report.writers.html.curves import Band
from kdx.sanitize import sanitize

MANY, _SPOT = 2000, 4
"""Up to so many points are all links with labels. Where there are more, only the selected ones are links, and points
within one square of so many pixels are drawn as one."""
_COLOURS, _SHAPES = (
    [f"var(--series-{number})" for number in range(6)],
    ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"],
)
"""Colours and shapes of the groups of a scatter, in turn; their numbers share no divisor, so pairs repeat late."""
_CURVE, _OVERLAY = (230, 110), (480, 240)
"""Width and height of one cell's curve, and of the chart that overlays several."""
_SCATTER, _SHORT = (300, 260), 12
"""Width and height of a scatter; and the longest name of a group, in letters, that still allows three in a row of the
legend."""
_LONGEST, _WIDEST = 420, 6.2
"""Greatest width of a forest's labels, and the average width of one of their letters; in pixels."""
_ROW = 20
"""Height of a row of the forest, in pixels."""

# Where vl-convert looks for data that a chart names by a relative address; it takes a link within the page for one.
_BASE = "https://vega.github.io/vega-datasets/"

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


@dataclass(frozen=True, slots=True)
class Point:
    """A run with its two scores, or a cell with its difference from another."""

    label: str
    """What the point stands for, in words."""
    href: str
    """The link to the details on the page, such as `#run-12`."""
    marked: bool
    """Whether the run is the selected one, or the difference is significant."""
    x: float
    y: float = 0.0
    low: float = 0.0
    """Lower bound of the interval around x; `high` is the upper bound."""
    high: float = 0.0
    group: str = ""
    """The group that a scatter shows by colour and shape."""


def learning_curve(band: Band, title: str, span: Scale, steps: Scale, best: tuple[float, float] | None) -> str:
    """A chart of the seeds' band over training, the selected seed's line, and a dot where its weights were tested.

    Args:
        span: range of the values in all charts that this one is compared with.
        steps: range of the optimiser steps in these charts.
        best: (step, value) of the dot.
    """
    x, y = _axes(span, steps)
    layers: list[dict[str, Any]] = []
    if band.seeds > 1:
        rows = [{"x": at, "y": low, "y2": high} for at, low, high in zip(band.steps, band.low, band.high, strict=True)]
        area = {"type": "area", "color": "var(--band)", "opacity": 1, "aria": False}
        layers.append({"data": {"values": rows}, "mark": area, "encoding": {"x": x, "y": y, "y2": {"field": "y2"}}})
    for points, mark in (
        (band.line, {"type": "line", "color": "var(--accent)", "strokeWidth": 1.5, "aria": False}),
        ([best] if best else [], {"type": "point", "filled": True, "color": "var(--accent)", "opacity": 1, "size": 30}),
    ):
        if points:
            rows = [{"x": step, "y": value} for step, value in points]
            layers.append({"data": {"values": rows}, "mark": {**mark, "aria": False}, "encoding": {"x": x, "y": y}})
    width, height = _CURVE
    return _drawn({"title": sanitize(title), "width": width, "height": height, "layer": layers})


def overlay(title: str, span: Scale, steps: Scale) -> str:
    """Empty axes, into which the page lays learning curves that have the same axes."""
    x, y = _axes(span, steps)
    width, height = _OVERLAY
    nothing = {"data": {"values": []}, "mark": {"type": "line", "aria": False}, "encoding": {"x": x, "y": y}}
    return _drawn({"title": sanitize(title), "width": width, "height": height, "layer": [nothing]})


def _axes(span: Scale, steps: Scale) -> tuple[dict[str, Any], dict[str, Any]]:
    domain, axis = {"domain": list(steps), "nice": False}, {"tickCount": 5, "grid": False}
    x = {"field": "x", "type": "quantitative", "title": "step", "scale": domain, "axis": axis}
    return x, {"field": "y", "type": "quantitative", "title": None, "scale": _scaled(span), "axis": {"tickCount": 4}}


def scatter(points: Sequence[Point], x: str, y: str) -> str:
    """A scatter of runs by two scores; groups differ by colour and shape, and marked points are filled."""
    spans = [scale([getattr(one, field) for one in points]) or (0.0, 1.0) for field in ("x", "y")]
    encoding: dict[str, Any] = {}
    for field, title, span in zip(("x", "y"), (x, y), spans, strict=True):
        # Whole pixels make a smaller file and look the same.
        scaled = {**_scaled(span), "round": True}
        encoding[field] = {"field": field, "type": "quantitative", "title": sanitize(title), "scale": scaled}
    groups = list(dict.fromkeys(sanitize(one.group) for one in points))
    few = max(map(len, groups), default=0) <= _SHORT
    encoding |= _of_groups(groups, 3 if few else 1)
    layers = []
    for marked in (False, True):
        its = [one for one in points if one.marked is marked]
        layer: dict[str, Any] = {
            "mark": {"type": "point", "filled": marked, "size": 60 if marked else 40, "opacity": 1 if marked else 0.8}
        }
        if marked or len(points) <= MANY:
            layer |= {"data": {"values": [_linked(one) for one in its]}, "encoding": encoding | _LINK}
        else:
            seen = {_spot(one, spans): one for one in its}.values()
            rows = [{"x": one.x, "y": one.y, "group": sanitize(one.group)} for one in seen]
            layer |= {"data": {"values": rows}, "encoding": encoding}
            layer["mark"] |= {"aria": False, "filled": True, "size": 9}
        layers += [layer] if its else []
    width, height = _SCATTER
    return _drawn({"width": width, "height": height, "layer": layers})


def _of_groups(groups: Sequence[str], columns: int) -> dict[str, Any]:
    """The colour and the shape of each group, with a legend of so many columns where there are several groups."""
    legend = {"title": None, "orient": "bottom", "labelLimit": 300, "columns": columns}
    encoding: dict[str, Any] = {}
    for channel, marks in (("color", _COLOURS), ("shape", _SHAPES)):
        domain = {"domain": groups, "range": [marks[number % len(marks)] for number in range(len(groups))]}
        encoding[channel] = {"field": "group", "type": "nominal", "scale": domain}
        encoding[channel]["legend"] = legend if len(groups) > 1 else None
    return encoding


def over_setting(series: Sequence[Series], x: str, y: str) -> str:
    """Scores against the values of a setting, a line and a band for each group, which differ by colour and shape."""
    rows: list[dict[str, Any]] = [
        {"x": at, "y": score, "low": low, "high": high, "group": sanitize(one.group)}
        for one in series
        for at, score, low, high in one.points
    ]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    across = {"field": "x", "type": "quantitative", "title": sanitize(x), "scale": {"type": "log", "base": 2}}
    across["axis"] = {"values": sorted({row["x"] for row in rows}), "grid": False}
    span = scale([row[end] for row in rows for end in ("low", "high")]) or (0.0, 1.0)
    up = {"field": "y", "type": "quantitative", "title": sanitize(y), "scale": _scaled(span)}
    encoding: dict[str, Any] = {"x": across, "y": up, **_of_groups(groups, 1)}
    colour = {"color": encoding["color"]}
    band = {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}, **colour}
    layers = [
        {"mark": {"type": "area", "opacity": 0.15, "aria": False}, "encoding": band},
        {"mark": {"type": "line", "strokeWidth": 1.5, "aria": False}, "encoding": {"x": across, "y": up, **colour}},
        {"mark": {"type": "point", "filled": True, "size": 35, "opacity": 1, "aria": False}, "encoding": encoding},
    ]
    width, height = _SCATTER
    return _drawn({"data": {"values": rows}, "width": width, "height": height, "layer": layers})


def over_parameter(plot: OverParameter, title: str, span: Scale, y: str) -> str:
    """The scores of trials against one parameter; the best trial is filled.

    Args:
        span: range of the scores in all charts that this one is compared with.
        y: what a score is.
    """
    x: dict[str, Any] = {"field": "x", "title": sanitize(plot.name)}
    if plot.words:
        words = list(map(sanitize, plot.words))
        x |= {"type": "nominal", "sort": words, "scale": {"domain": words}, "axis": {"labelAngle": 0, "labelLimit": 80}}
    else:
        scaled = {"domain": list(plot.span), "nice": False} | ({"type": "log"} if plot.logarithmic else {"zero": False})
        x |= {"type": "quantitative", "scale": scaled, "axis": {"tickCount": 4, "grid": False}}
    up = {"field": "y", "type": "quantitative", "title": sanitize(y), "scale": _scaled(span), "axis": {"tickCount": 4}}
    layers = []
    for best in (False, True):
        rows = [
            {"x": sanitize(plot.words[int(one.at)]) if plot.words else one.at, "y": one.score, "label": _trial(one)}
            for one in plot.points
            if one.best is best
        ]
        mark = {"type": "point", "filled": best, "size": 45, "opacity": 1, "color": "var(--accent)"}
        encoding = {"x": x, "y": up, "description": {"field": "label"}}
        layers += [{"data": {"values": rows}, "mark": mark, "encoding": encoding}] if rows else []
    width, height = _CURVE
    return _drawn({"title": sanitize(title), "width": width, "height": height, "layer": layers})


def _trial(one: TrialPoint) -> str:
    return f"trial {one.number}{', the best' if one.best else ''}: {one.score:.4g}"


def _spot(one: Point, spans: Sequence[Scale]) -> tuple[int, ...]:
    """The square of the plot in which a point lies."""
    at = zip((one.x, one.y), spans, _SCATTER, strict=True)
    return tuple(int(pixels / _SPOT * share(value, span)) for value, span, pixels in at)


def forest(points: Sequence[Point], title: str, *, ratios: bool = False) -> str:
    """A forest plot: differences with their intervals, one a row, in the given order; marked points are filled.

    Args:
        ratios: whether they are ratios, of which less is better: the axis then runs to the left.
    """
    rows = [{**_linked(one), "low": one.low, "high": one.high, "marked": one.marked} for one in points]
    # The reader's font may be wider than the one that the labels are measured with here.
    room = min(_LONGEST, _WIDEST * max(len(row["label"]) for row in rows))
    axis = {"labelLimit": _LONGEST, "minExtent": room, "labelColor": "var(--ink)", "ticks": False, "domain": False}
    y = {"field": "label", "type": "nominal", "sort": None, "title": None, "axis": {**axis, "labelPadding": 8}}
    # More ticks have labels that run into each other where the reader's font is wider.
    ticks = {"tickCount": 5, "format": ".3~g"}
    span = scale([1.0, *(bound for one in points for bound in (one.low, one.high))]) if ratios else None
    scaled = {**_scaled(span), "reverse": True} if span else {}
    x = {"field": "x", "type": "quantitative", "title": sanitize(title), "axis": ticks, "scale": scaled}
    fill = {"condition": {"test": "datum.marked", "value": "var(--accent)"}, "value": "var(--paper)"}
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
    return _drawn({"data": {"values": rows}, "width": 380, "height": {"step": _ROW}, "layer": layers})


_LINK = {"href": {"field": "href"}, "description": {"field": "label"}}


def _linked(one: Point) -> dict[str, Any]:
    return {"x": one.x, "y": one.y, "label": sanitize(one.label), "href": one.href, "group": sanitize(one.group)}


def _scaled(span: Scale) -> Mapping[str, Any]:
    low, high = span
    if is_logarithmic(span):
        return {"domain": [low, high], "type": "log"}
    around = 0.0 if low < high else abs(low) / 10 or 1.0
    return {"domain": [low - around, high + around], "zero": False, "nice": True}


def _drawn(chart: Mapping[str, Any]) -> str:
    spec = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "config": _CONFIG, **chart}
    svg: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return svg.replace(f'xlink:href="{_BASE}#', 'href="#')

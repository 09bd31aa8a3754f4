"""Plots and maps of attention as Vega-Lite, which vl-convert draws into SVG, PNG or PDF without browser or display."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdx.report.figures.plot import Plot, Scale, is_logarithmic
from kdx.sanitize import sanitize

FORMATS = (".svg", ".png", ".pdf")

_SIZE = (460, 240)
"""Width and height of a plot in a file, in pixels."""
_TICK = 75
"""Width of a number of four digits with the room around it, in pixels."""
_SHARPNESS = 2.0
"""Pixels of a PNG to one of the figure."""
# Colours that people with any colour vision tell apart [Okabe & Ito 2008]; the dashes differ too, for print in black.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"]
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3]]
MOST_DOTS = 12
"""Largest number of points in a series that have a dot each."""
_SQUARE = 13
"""Width and height of a square of an attention map, in pixels."""
_CONFIG: dict[str, Any] = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"grid": False, "titleFontWeight": "normal"},
}
# Where vl-convert looks for data that a chart names by a relative address; it takes a link within a page for one.
_BASE = "https://vega.github.io/vega-datasets/"


def figure(plots: Sequence[Plot], suffix: str) -> bytes:
    """Draw plots one above the other, with a common legend.

    Args:
        suffix: one of `FORMATS`.
    """
    import vl_convert  # only here, since the formats are asked for before anything is drawn

    names = list(dict.fromkeys(sanitize(series.name) for plot in plots for series in plot.series))
    spec = _document({"vconcat": [chart(plot, _SIZE, names) for plot in plots]}, _CONFIG)
    if suffix == ".svg":
        svg: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
        return svg.encode()
    if suffix == ".png":
        png: bytes = vl_convert.vegalite_to_png(spec, scale=_SHARPNESS, allowed_base_urls=[])
        return png
    pdf: bytes = vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[])
    return pdf


def to_svg(chart: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Draw a chart for a page, with links that lead to places on it."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(_document(chart, config), allowed_base_urls=[])
    return svg.replace(f'xlink:href="{_BASE}#', 'href="#')


def _document(chart: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "config": config, **chart}


def chart(
    plot: Plot, size: tuple[int, int], names: Sequence[str], colours: Sequence[str] = COLOURS, dot: str = "#000000"
) -> dict[str, Any]:
    """Return the Vega-Lite of a plot: bands of its ranges, lines or points, and its dots.

    Args:
        names: of the series that a legend has; without several there is none.
        dot: colour of the dots.
    """
    spanned = plot.spanned()
    x: dict[str, Any] = {"field": "x", "type": "quantitative", "title": sanitize(plot.x), "axis": {"grid": False}}
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": sanitize(plot.y), "axis": {"tickCount": 4}}
    if spanned and spanned.x_span and spanned.y_span:
        y["scale"] = scaled(spanned.y_span)
        x["scale"] = {"domain": list(spanned.x_span), "nice": False}
        x["scale"] |= {"type": "log"} if plot.logarithmic else {"zero": False}
    places = sorted({point.x for series in plot.series for point in series.points})
    x["axis"] |= (
        {"values": places} if plot.logarithmic and len(places) <= 8 else {"tickCount": min(5, size[0] // _TICK)}
    )
    if plot.ticks:
        words = [sanitize(word) for word in plot.ticks]
        x |= {"type": "nominal", "sort": words, "scale": {"domain": words}, "axis": {"labelAngle": 0, "labelLimit": 80}}

    def across(at: float) -> float | str:
        return sanitize(plot.ticks[int(at)]) if plot.ticks else at

    rows = [
        {
            "x": across(point.x),
            "y": point.y,
            "low": point.low,
            "high": point.high,
            "name": sanitize(series.name),
            "label": sanitize(
                f"{series.name}, {plot.x} {plot.ticks[int(point.x)] if plot.ticks else f'{point.x:,.10g}'}"
                f": {point.low if point.y is None else point.y:.4g}"
            ),
        }
        for series in plot.series
        for point in series.points
    ]
    colour, dashes = grouped(names, "name", color=colours, strokeDash=_DASHES).values()
    if len(names) > 1:
        colour["legend"] |= {"symbolType": "stroke", "symbolOpacity": 1, "symbolSize": 500}
    # A description of Vega's own would be an expression in which a name could spell control characters.
    encoding = {"x": x, "y": y, "color": colour, "description": {"field": "name"}}
    layers: list[dict[str, Any]] = []
    if any(point.low < point.high for series in plot.series for point in series.points):
        band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
        layers.append({"mark": {"type": "area", "opacity": 0.15, "aria": False}, "encoding": band})
    if plot.joined:
        layers.append({"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": {**encoding, "strokeDash": dashes}})
    few = max((len(series.points) for series in plot.series), default=0) <= MOST_DOTS
    if few or not plot.joined:
        mark = {"type": "point", "size": 18 if plot.joined else 45, "filled": plot.joined, "opacity": 1}
        layers.append({"mark": mark, "encoding": {**encoding, "description": {"field": "label"}}})
    if plot.dots:
        marked = [{"x": across(at), "y": value} for at, value in plot.dots]
        mark = {"type": "point", "filled": True, "opacity": 1, "size": 45, "color": dot, "aria": False}
        layers.append({"data": {"values": marked}, "mark": mark, "encoding": {"x": x, "y": y}})
    width, height = size
    title = {"title": sanitize(plot.title)} if plot.title else {}
    return {**title, "width": width, "height": height, "data": {"values": rows}, "layer": layers}


def grouped(names: Sequence[str], field: str, **channels: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Return the encoding of each channel, in which the groups take its marks in turn, with a legend of several."""
    legend = {"title": None, "orient": "bottom", "columns": 1, "labelLimit": 400} if len(names) > 1 else None
    encoding: dict[str, dict[str, Any]] = {}
    for channel, marks in channels.items():
        in_turn = [marks[number % len(marks)] for number in range(len(names))]
        encoding[channel] = {"field": field, "type": "nominal", "scale": {"domain": list(names), "range": in_turn}}
        encoding[channel]["legend"] = legend
    return encoding


def scaled(span: Scale) -> dict[str, Any]:
    """Return the scale of a vertical axis."""
    low, high = span
    if is_logarithmic(span):
        return {"domain": [low, high], "type": "log"}
    around = 0.0 if low < high else abs(low) / 10 or 1.0
    return {"domain": [low - around, high + around], "zero": False, "nice": True}


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one attention while a model read one line."""

    name: str
    """Such as `decoder.layers.0.cross_attention`."""
    queries: Sequence[str]
    """The tokens that attend."""
    keys: Sequence[str]
    """The tokens that they attend to."""
    weights: Sequence[Sequence[Sequence[float]]]
    """Head → query → key."""


def attention_chart(drawn: AttentionMap, colour: str) -> dict[str, Any]:
    """Return the Vega-Lite of a map: its heads side by side, on one scale from 0 to 1."""
    heads = [_head(drawn, head, colour) for head in range(len(drawn.weights))]
    return {"hconcat": heads, "spacing": 14}


def _head(drawn: AttentionMap, head: int, colour: str) -> dict[str, Any]:
    cells = [
        {"query": query, "key": key, "weight": weight}
        for query, row in enumerate(drawn.weights[head])
        for key, weight in enumerate(row)
    ]
    axes = {}
    for channel, field, tokens in (("x", "key", drawn.keys), ("y", "query", drawn.queries)):
        # A line may have a word twice, so places are numbers and their words labels; JSON is a literal of Vega too.
        words = json.dumps([sanitize(token) for token in tokens], ensure_ascii=False)
        axis = {"labelExpr": f"{words}[datum.value]", "ticks": False, "domain": False, "labelLimit": 90}
        shown = axis if channel == "x" or head == 0 else None
        axes[channel] = {"field": field, "type": "ordinal", "title": None, "axis": shown}
    weight = {"field": "weight", "type": "quantitative", "scale": {"domain": [0, 1], "range": [0, 1]}, "legend": None}
    return {
        "title": f"head {head}",
        "data": {"values": cells},
        "mark": {"type": "rect", "color": colour, "aria": False},
        "encoding": {**axes, "opacity": weight},
        "width": {"step": _SQUARE},
        "height": {"step": _SQUARE},
    }

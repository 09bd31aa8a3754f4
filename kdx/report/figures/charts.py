"""Charts as Vega-Lite, which vl-convert draws into SVG, PNG or PDF: it needs no browser and no display.

Those of a page are SVG whose colours are custom properties of the page's style.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from kdx.report.figures.plot import Plot, Scale, is_logarithmic, scale
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
_FILE: dict[str, Any] = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"grid": False, "titleFontWeight": "normal"},
}
_SQUARE = 13
"""Width and height of a square of a map, in pixels."""
CURVE, SCATTER, OVERLAY = (230, 110), (300, 260), (480, 240)
"""Width and height of one cell's curve, of a scatter, and of a chart of several curves; in pixels."""
_SERIES = [f"var(--series-{number})" for number in range(6)]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
"""Colours and shapes of the groups of a scatter, in turn; their numbers share no divisor, so pairs repeat late."""
_LONGEST, _WIDEST = 66, 6.2
"""Most letters of the name of a row, and the average width of one in pixels."""
_LEAST = 1e-290
"""Vega counts the ticks of a shorter axis to infinity."""
_ROW = 22
"""Height of a row of intervals, in pixels."""
_PAGE: dict[str, Any] = {
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
# Where vl-convert looks for data that a chart names by a relative address; it takes a link within a page for one.
_BASE = "https://vega.github.io/vega-datasets/"


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


def figure(plots: Sequence[Plot], suffix: str) -> bytes:
    """Draw plots one above the other, with a common legend.

    Args:
        suffix: one of `FORMATS`.
    """
    import vl_convert  # only here, since the formats are asked for before anything is drawn

    names = list(dict.fromkeys(sanitize(series.name) for plot in plots for series in plot.series))
    spec = _document({"vconcat": [_chart(plot, _SIZE, names) for plot in plots]}, _FILE)
    if suffix == ".svg":
        svg: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
        return svg.encode()
    if suffix == ".png":
        png: bytes = vl_convert.vegalite_to_png(spec, scale=_SHARPNESS, allowed_base_urls=[])
        return png
    pdf: bytes = vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[])
    return pdf


def plotted(plot: Plot, size: tuple[int, int] = CURVE) -> str:
    """Draw a plot; a single series has the accent's colour."""
    names = list(dict.fromkeys(sanitize(series.name) for series in plot.series))
    colours = _SERIES if len(names) > 1 else ["var(--accent)"]
    return _svg(_chart(plot, size, names, colours, "var(--accent)"))


def mapped(drawn: AttentionMap) -> str:
    """Draw a map of attention: its heads side by side, on one scale from 0 to 1."""
    return _svg({"hconcat": [_head(drawn, head) for head in range(len(drawn.weights))], "spacing": 14})


def scatter(marks: Sequence[Mark], x: str, y: str) -> str:
    """Draw runs by two scores; groups differ by colour and shape, and selected runs are filled."""
    encoding: dict[str, Any] = {}
    for field, title in (("x", x), ("y", y)):
        # Whole pixels make a smaller file and look the same.
        span = scale([getattr(mark, field) for mark in marks]) or (0.0, 1.0)
        axis = {**_scaled(span), "round": True}
        encoding[field] = {"field": field, "type": "quantitative", "title": sanitize(title), "scale": axis}
        encoding[field]["axis"] = {"tickCount": 5, "labelOverlap": True, "labelSeparation": 8}
    names = list(dict.fromkeys(sanitize(mark.group) for mark in marks))
    encoding |= {**_grouped(names, "group", color=_SERIES, shape=_SHAPES), **_LINK}
    layers = _points(marks, encoding, {"size": 40, "opacity": 0.8}, {"size": 60, "opacity": 1})
    width, height = SCATTER
    return _svg({"width": width, "height": height, "layer": layers})


def forest(marks: Sequence[Mark], title: str, *, zero: float = 0.0) -> str:
    """Draw differences with their intervals, one a row, in the given order; empty where no axis has room for them.

    Args:
        zero: no difference; 1 for ratios, of which less is better, so that their axis runs to the left.
    """
    low, high = scale([zero, *(bound for mark in marks for bound in (mark.low, mark.high, *mark.at))]) or (0.0, 0.0)
    if not _LEAST < high - low < inf:
        return ""
    across: dict[str, Any] = {"padding": 6}
    if zero:
        # Ratios have a logarithmic axis, on which an interval of logarithms is symmetric.
        logarithmic = {"type": "log", "nice": False} if low > 0 else {}
        across |= {**_scaled((low, high)), **logarithmic, "reverse": True}
    bars = [{"group": sanitize(mark.group), "at": at} for mark in marks for at in mark.at]
    y, layers = _intervals(marks, title, across)
    tick = {"type": "tick", "color": "var(--ink)", "thickness": 1.5, "size": 12, "aria": False}
    at = {"field": "at", "type": "quantitative"}
    rule = {"type": "rule", "color": "var(--muted)", "aria": False}
    below = [{"data": {"values": [{}]}, "mark": rule, "encoding": {"x": {"datum": zero}}}]
    below += [{"data": {"values": bars}, "mark": tick, "encoding": {"x": at, "y": y}}] if bars else []
    return _svg({"width": 380, "height": {"step": _ROW}, "layer": [*below, *layers]})


def dots(cells: Sequence[Mark], runs: Sequence[Mark], title: str) -> str:
    """Draw the score of each run, and the mean of each cell with its interval; a row for each group of the cells.

    Args:
        cells: a mean each; the best is filled.
        runs: selected ones are filled.
    """
    values = [mark.x for mark in runs]
    span = scale([*values, *(bound for mark in cells for bound in (mark.low, mark.high))]) or (0.0, 1.0)
    y, layers = _intervals(cells, title, _scaled(span), shape="diamond")
    encoding = {"y": y, "x": {"field": "x", "type": "quantitative"}, **_LINK}
    looks = ({"size": 50, "opacity": 0.8, "color": colour} for colour in ("var(--point)", "var(--ink)"))
    points = _points(runs, encoding, *looks)
    return _svg({"width": 250, "height": {"step": _ROW}, "layer": [layers[0], *points, layers[1]]})


def _points(
    marks: Sequence[Mark], encoding: Mapping[str, Any], empty: Mapping[str, Any], filled: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The layers of the marks that are not filled and of those that are, each with its look."""
    return [
        {
            "data": {"values": [_linked(mark) for mark in marks if mark.filled is is_filled]},
            "mark": {"type": "point", "filled": is_filled, **look},
            "encoding": encoding,
        }
        for is_filled, look in ((False, empty), (True, filled))
    ]


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


def _head(drawn: AttentionMap, head: int) -> dict[str, Any]:
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
        "mark": {"type": "rect", "color": "var(--accent)", "aria": False},
        "encoding": {**axes, "opacity": weight},
        "width": {"step": _SQUARE},
        "height": {"step": _SQUARE},
    }


def _svg(chart: Mapping[str, Any]) -> str:
    """Draw a chart for a page, with links that lead to places on it."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(_document(chart, _PAGE), allowed_base_urls=[])
    return svg.replace(f'xlink:href="{_BASE}#', 'href="#')


def _document(chart: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "config": config, **chart}


def _chart(
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
        y["scale"] = _scaled(spanned.y_span)
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
    colour, dashes = _grouped(names, "name", color=colours, strokeDash=_DASHES).values()
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


def _grouped(names: Sequence[str], field: str, **channels: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Return the encoding of each channel, in which the groups take its marks in turn, with a legend of several."""
    legend = {"title": None, "orient": "bottom", "columns": 1, "labelLimit": 400} if len(names) > 1 else None
    encoding: dict[str, dict[str, Any]] = {}
    for channel, marks in channels.items():
        in_turn = [marks[number % len(marks)] for number in range(len(names))]
        encoding[channel] = {"field": field, "type": "nominal", "scale": {"domain": list(names), "range": in_turn}}
        encoding[channel]["legend"] = legend
    return encoding


def _scaled(span: Scale) -> dict[str, Any]:
    """Return the scale of a vertical axis."""
    low, high = span
    if is_logarithmic(span):
        return {"domain": [low, high], "type": "log"}
    around = 0.0 if low < high else abs(low) / 10 or 1.0
    return {"domain": [low - around, high + around], "zero": False, "nice": True}

"""Curves over training as a file: SVG, PNG or PDF, from Vega-Lite.

The library is the one that draws the HTML page (`kdx.report.writers.html.charts`): it needs no browser and no display,
and writes all three formats from one description.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kdx.report.figures.curves import NamedCurve
from kdx.report.figures.scale import is_logarithmic, scale
from kdx.sanitize import sanitize

FORMATS = (".svg", ".png", ".pdf")

_WIDTH, _HEIGHT = 460, 240  # pixels of each plot
_SHARPNESS = 2.0
"""Pixels of a PNG to one of the figure."""
# Colours that people with any colour vision tell apart [Okabe & Ito 2008]; the dashes differ too, for print in black.
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"]
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3]]
_CONFIG: dict[str, Any] = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"grid": False, "titleFontWeight": "normal"},
    "legend": {
        "labelLimit": 400,
        "orient": "bottom",
        "columns": 1,
        "title": None,
        "symbolType": "stroke",
        "symbolSize": 500,
    },
}


def figure(curves: Mapping[str, Sequence[NamedCurve]], suffix: str) -> bytes:
    """One plot a metric, one above the other, with a common legend.

    Args:
        curves: metric → its curves, whose names tell them apart.
        suffix: one of `FORMATS`.
    """
    import vl_convert  # only here, since the formats are asked for before anything is drawn

    names = list(dict.fromkeys(sanitize(one.name) for its in curves.values() for one in its))
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": _CONFIG,
        "vconcat": [_plot(metric, its, names) for metric, its in curves.items()],
    }
    if suffix == ".svg":
        svg: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
        return svg.encode()
    if suffix == ".png":
        png: bytes = vl_convert.vegalite_to_png(spec, scale=_SHARPNESS, allowed_base_urls=[])
        return png
    pdf: bytes = vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[])
    return pdf


def _plot(metric: str, curves: Sequence[NamedCurve], names: Sequence[str]) -> dict[str, Any]:
    points = [(sanitize(one.name), at, value) for one in curves for at, value in one.finite]
    span = scale([value for _, _, value in points])
    logarithmic = span is not None and is_logarithmic(span)
    encoding: dict[str, Any] = {
        "x": {"field": "step", "type": "quantitative", "title": "step"},
        "y": {
            "field": "value",
            "type": "quantitative",
            "title": sanitize(metric),
            "scale": {"type": "log"} if logarithmic else {"zero": False},
        },
    }
    if len(names) > 1:
        for channel, marks in (("color", _COLOURS), ("strokeDash", _DASHES)):
            domain = {"domain": list(names), "range": [marks[place % len(marks)] for place in range(len(names))]}
            encoding[channel] = {"field": "name", "type": "nominal", "scale": domain}
    else:
        encoding["color"] = {"value": _COLOURS[0]}
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": [{"name": name, "step": at, "value": value} for name, at, value in points]},
        # A curve of one point has no line.
        "mark": {
            "type": "line",
            "point": {"size": 14} if len(points) <= 60 * len(curves) else False,
            "strokeWidth": 1.5,
        },
        "encoding": encoding,
    }

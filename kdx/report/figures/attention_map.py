"""Attention weights as a figure: queries by keys, a square for each pair, the darker the more attention."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kdx.sanitize import sanitize

_SQUARE = 13
"""Width and height of a square, in pixels."""


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


def chart(drawn: AttentionMap, colour: str) -> dict[str, Any]:
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

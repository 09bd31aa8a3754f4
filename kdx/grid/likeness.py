"""Which cells are alike in what their runs cost: the time of a step, and memory."""

import json
from collections.abc import Mapping
from typing import Any

_NO_COST = {
    "data": ("seed",),
    "model": ("dropout", "inner_dropout", "output_dropout", "initialisation"),
    "training": (
        "steps",
        "learning_rate",
        "warmup",
        "schedule",
        "decay",
        "final_rate",
        "betas",
        "epsilon",
        "momentum",
        "weight_decay",
        "label_smoothing",
        "clip",
        "record_every",
    ),
}
"""Settings on which the time of a step does not depend."""
_OTHER = frozenset({"select", "parts"})


def likeness(cell: Mapping[str, Any]) -> tuple[str, str]:
    """Two keys of a resolved cell. Cells with the same first key differ in nothing on which the cost of a step depends.

    Cells with the same second key have the same task, text, sizes and batches, but may have other kernels, positions
    and the like.
    """
    sizes: dict[str, Any] = {
        section: {name: value for name, value in cell[section].items() if name not in no_cost}
        for section, no_cost in _NO_COST.items()
        if isinstance(cell.get(section), dict)
    }
    sizes |= {name: cell.get(name) for name in ("task", "evaluation")}
    words = {name: value for name, value in cell.items() if name not in sizes and name not in _OTHER}
    return json.dumps([sizes, words], sort_keys=True), json.dumps(sizes, sort_keys=True)

"""Planning 10,000 cells, against parsing and validating as many settings without a grid around them."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kdx.grid.load import load_grid
from kdx.grid.spec import CellSpec

ROUNDS = 3
LIMIT = 4.0
"""Largest ratio: a cell is also composed, hashed, and looked up by conditions and tables."""
CELL = {
    "task": "prediction",
    "data": {"corpus": "synthetic-language"},
    "model": {"width": 16, "heads": 2},
    "training": {"batch_tokens": 256, "length": 32},
}
GRID = """
task: prediction
data: {corpus: synthetic-language}
model: {heads: 2}
training: {batch_tokens: 256, length: 32}
approaches:
  No position: {position: none}
  Rotary: {position: rotary}
  Table 2: {position: lookup, clip: 2}
  Table 4: {position: lookup, clip: 4}
axes: {kernel: [exponential, rbf], model.width: [16, 32], training.steps: {from: 10, to: 6250, step: 10}}
overrides: [{when: {kernel: rbf}, set: {training.warmup: 3}}]
"""


def measure() -> dict[str, object]:
    """Best processor seconds of each, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "grid.yaml"
        file.write_text(GRID)
        cells = len(load_grid(file).cells)
        planned = _best(lambda: load_grid(file))
    validated = _best(lambda: [CellSpec.model_validate(CELL) for _ in range(cells)])
    ratio = planned / validated
    return {
        "cells": cells,
        "seconds": {"planned": round(planned, 2), "validated": round(validated, 2)},
        "ratio": round(ratio, 2),
        "limit": LIMIT,
        "within": ratio <= LIMIT,
    }


def _best(action: Callable[[], object]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return min(seconds)

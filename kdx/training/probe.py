"""Measures what a run costs by training a cell for a few steps: `python -m kdx.training.probe`.

`kdx.sweep.probe` asks for {"cell": …}, see `kdx.components.apart`.
"""

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, SupportsFloat

from kdx.components.apart import answer
from kdx.grid.spec import CellSpec
from kdx.training.environment import peak_memory
from kdx.training.recorder import Recorder
from kdx.training.run import PARAMETERS, train
from kdx.training.stopping import StopRequest

STEPS, WARM = 12, 4
"""Optimiser steps to make, and how many of them do not count: the first ones allocate memory and have cold caches."""


class ProbeRecorder(Recorder):
    """Notes when each step was done."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        """When each step was done."""
        self.parameters = 0

    def metric(self, name: str, step: int, value: float) -> None:
        if name == PARAMETERS:
            self.parameters = int(value)

    def progress(self, step: int, loss: float, gradient_norm: SupportsFloat | None = None) -> None:
        self.steps.append(time.perf_counter())


def measure(request: Mapping[str, Any], step: Callable[[str], None]) -> dict[str, float]:
    """Return what a cell costs here.

    Returns:
        `step`, seconds of a step; `passes`, seconds of one validation and one test; `memory`, bytes that the process
        held at most; `parameters`, numbers that training changes.
    """
    spec = CellSpec.model_validate(json.loads(request["cell"]))
    # Not validated again, since a schedule may be longer than these few steps; it is cut short.
    few = {"steps": STEPS, "validate_every": STEPS, "average": 0}
    short = spec.model_copy(update={"training": spec.training.model_copy(update=few)})
    recorder = ProbeRecorder()
    with tempfile.TemporaryDirectory() as folder:
        train(short, 0, folder=Path(folder), recorder=recorder, stop=StopRequest())
    done = time.perf_counter()
    counted = recorder.steps[WARM - 1 :]
    return {
        "step": (counted[-1] - counted[0]) / (len(counted) - 1),
        "passes": done - recorder.steps[-1],
        "memory": peak_memory(),
        "parameters": recorder.parameters,
    }


if __name__ == "__main__":
    answer(measure)

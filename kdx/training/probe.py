"""Measures what runs cost by training each cell for a few steps: `python -m kdx.training.probe`.

Reads {"components": [...], "cells": [...]} from standard input and writes a line of JSON for each cell:
{"step": seconds, "passes": seconds of one validation and one test, "memory": bytes, "parameters": number}, or
{"problem": text}.
"""

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn, SupportsFloat, TextIO

from kdx.components.registry import take
from kdx.grid.spec import CellSpec
from kdx.training.environment import peak_memory
from kdx.training.recorder import Recorder
from kdx.training.run import PARAMETERS, train
from kdx.training.stopping import StopRequest

STEPS, WARM = 12, 4
"""Optimiser steps that are made. The first ones do not count: they take memory first, and their caches are cold."""


class ProbeRecorder(Recorder):
    """Looks at the clock."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        """When each step was done."""
        self.parameters = 0

    def metric(self, name: str, step: int, value: float) -> None:
        if name == PARAMETERS:
            self.parameters = int(value)

    def progress(self, step: int, loss: float, gradient_norm: SupportsFloat | None = None) -> None:
        self.steps.append(time.perf_counter())


def main() -> None:
    """Measures what standard input asks for."""
    request = json.load(sys.stdin)
    # What a library or a component prints, or writes to the descriptor, is none of the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    take(request["components"])
    with answer:
        for text in request["cells"]:
            # Each in a process of its own, so that none has the memory of another.
            child = os.fork()
            if not child:
                _measure_and_exit(text, answer)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code:
                why = "perhaps for lack of memory" if code == -signal.SIGKILL else f"with code {code}"
                print(json.dumps({"problem": f"its process was ended, {why}"}), file=answer, flush=True)


def _measure_and_exit(text: str, answer: TextIO) -> NoReturn:
    try:
        result = measure(CellSpec.model_validate(json.loads(text)))
    except Exception as error:
        result = {"problem": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), file=answer, flush=True)
    os._exit(0)


def measure(spec: CellSpec) -> dict[str, Any]:
    """What a step, a validation with a test, and the model of a cell cost here."""
    # Not validated again: a schedule may be longer than these few steps, and is cut short.
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
    main()

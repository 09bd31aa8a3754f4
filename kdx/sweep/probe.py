"""Measures what runs will cost where no like run has completed, by a few steps of each cell in another process."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

from kdx.components.registry import components_of
from kdx.errors import KdxError
from kdx.grid.plan import PlannedCell
from kdx.sweep.forecast import Basis, Forecast


def probe(cells: Sequence[PlannedCell]) -> Iterator[tuple[PlannedCell, Forecast | str]]:
    """Each cell with what a run of it will cost, or with why it could not be measured, as it is measured.

    The time of a run is that of its steps and of its validations and test. A validation is that of a model that has
    hardly learned; of one that writes, such as a translation, it may take longer than later.

    Raises:
        KdxError: the process that measures was ended, as when memory ran out.
    """
    hashes = {word: sha256 for cell in cells for word, sha256 in cell.spec.components.items()}
    asked = {
        "components": [one.text for one in components_of(hashes)],
        "cells": [cell.spec.text for cell in cells],
    }
    # -P: no module is looked for in the folder of the user, where another one may have its name.
    command = [sys.executable, "-P", "-m", "kdx.training.probe"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            with process.stdin as stream:
                json.dump(asked, stream)
            for cell in cells:
                line = process.stdout.readline()
                if not line:
                    code = process.wait()
                    raise KdxError(
                        f"the process that measures cell {cell.id[:8]} was ended, with code {code}",
                        hint="it may need more memory than there is",
                    )
                found = json.loads(line)
                yield cell, found["problem"] if "problem" in found else _forecast(cell, found)
        finally:
            process.kill()


def _forecast(cell: PlannedCell, found: dict[str, float]) -> Forecast:
    training = cell.spec.training
    validations = training.steps / training.validate_every if training.validate_every else 1
    # A test reads as much as a validation, more or less.
    seconds = training.steps * found["step"] + (validations + 1) * found["passes"] / 2
    return Forecast(seconds, int(found["memory"]), int(found["parameters"]), Basis.PROBE, 0)

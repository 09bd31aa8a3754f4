"""Measures what a run will cost where no like run has completed, by a few steps in a child process."""

from kdx.components.apart import ask_apart
from kdx.components.registry import components_of
from kdx.grid.plan import PlannedCell
from kdx.sweep.forecast import Basis, Forecast

WITHIN = 3600  # seconds, for one cell


def probe(cell: PlannedCell) -> Forecast:
    """Return what a run of a cell will cost: the time of its steps, its validations and its test.

    The validation that is measured is that of a model that has hardly learned; of a task that writes, such as a
    translation, it may take longer than later ones.

    Raises:
        KdxError: the cell cannot be trained here, or its process was killed, as when memory ran out.
    """
    components, request = components_of(cell.spec.components), {"cell": cell.spec.text}
    measured = ask_apart("kdx.training.probe", components, request, within=WITHIN, limit=WITHIN)
    training = cell.spec.training
    validations = training.steps / training.validate_every if training.validate_every else 1
    # A test reads as much as a validation, more or less.
    seconds = training.steps * measured["step"] + (validations + 1) * measured["passes"] / 2
    return Forecast(seconds, measured["memory"], measured["parameters"], Basis.PROBE, 0)

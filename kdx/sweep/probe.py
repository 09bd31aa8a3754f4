"""Measures what a run will cost by a few steps in a child process, for when no similar run has completed."""

from kdx.components.apart import ask_apart
from kdx.components.registry import components_of
from kdx.grid.plan import PlannedCell
from kdx.sweep.forecast import Basis, Forecast

WITHIN = 3600  # seconds, for one cell


def probe(cell: PlannedCell) -> Forecast:
    """Return what a run of a cell will cost: the time of its steps, its validations and its test.

    The measured validation is of a model that has hardly learned; if the task generates text, as translation does, it
    may take longer than later validations.

    Raises:
        KdxError: the cell cannot be trained here, or its process was killed, as when memory ran out.
    """
    components, request = components_of(cell.spec.components), {"cell": cell.spec.text}
    measured = ask_apart("kdx.training.probe", components, request, within=WITHIN, limit=WITHIN)
    training = cell.spec.training
    validations = training.steps / training.validate_every if training.validate_every else 1
    # A test reads about as much as a validation.
    seconds = training.steps * measured["step"] + (validations + 1) * measured["passes"] / 2
    return Forecast(seconds, measured["memory"], measured["parameters"], Basis.PROBE, 0)

"""The validation metric that picks a run's best weights, and a cell's best seed."""

from collections.abc import Iterable

from kdx.grid.fields import CellFields
from kdx.grid.sections import Select, refuse
from kdx.tasks import TASKS


def resolve_select(cell: CellFields) -> None:
    """Settles `select`, by the first of the task's metrics unless the grid says otherwise."""
    known = TASKS.definition(cell.task).metrics
    metric = cell.select.metric if cell.select else f"valid/{next(iter(known))}"
    split, _, name = metric.rpartition("/")
    if split == "test":
        raise refuse("select.metric", f"`{metric}` selects on the test set", allowed=_valid(known))
    if split not in ("", "valid") or name not in known:
        raise refuse("select.metric", f"unknown validation metric `{metric}`", allowed=_valid(known))
    direction = (cell.select and cell.select.direction) or known[name]
    if direction is not known[name]:
        raise refuse("select.direction", f"the good end of {name} is {known[name]}", allowed=known[name])
    cell.settle(select=Select(metric=f"valid/{name}", direction=direction))


def _valid(names: Iterable[str]) -> str:
    return ", ".join(f"valid/{name}" for name in names)

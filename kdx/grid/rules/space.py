"""The space of a task's tokens, and the other choices that it allows."""

from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.grid.field_types import refuse
from kdx.grid.fields import CellFields
from kdx.tasks import TASKS
from kdx.vocabulary import Inject, Space


def resolve_space(cell: CellFields) -> None:
    """Settle `space`, which is None for text."""
    task = TASKS.definition(cell.task)
    spaces = task.spaces or (Space.SEQUENCE,)
    if cell.space not in (None, *spaces):
        raise refuse("space", f"{cell.task} is not seen as `{cell.space}`", allowed=", ".join(spaces))
    if not task.spaces:
        cell.settle(space=None)
        return
    space = cell.space or spaces[0]
    if KERNELS.definition(cell.kernel).sees_positions and space is not Space.SEQUENCE:
        able = ", ".join(known.word for known in KERNELS.definitions() if not known.sees_positions)
        raise refuse(
            "kernel", f"{cell.kernel} weighs by places in a sequence, and the space is `{space}`", allowed=able
        )
    schemes = ["none", *(known.word for known in POSITIONS.definitions() if space in known.spaces)]
    for scheme in cell.position:
        if scheme not in schemes:
            raise refuse("position", f"the space `{space}` has no position `{scheme}`", allowed=", ".join(schemes))
    values = [known.word for known in VALUES.definitions() if space in known.spaces]
    if cell.value is not None and cell.value not in values:
        raise refuse("value", f"the space `{space}` has no value `{cell.value}`", allowed=", ".join(values))
    if cell.inject is Inject.INPUT:
        raise refuse("inject", f"{cell.task} has positions inside each attention only", allowed=Inject.PER_LAYER)
    if space is Space.GRAPH and cell.option("clip") is not None:
        raise refuse("clip", "in a graph each label has a vector, whatever the distance", hint="remove it")
    filters = [known.word for known in FILTERS.definitions() if space in known.spaces]
    if cell.filter.encoder_self not in filters:
        raise refuse(
            "filter.encoder-self", f"a {space} has no order that a filter could follow", allowed=", ".join(filters)
        )
    if space not in MIXERS.definition(cell.mixer).spaces:
        able = ", ".join(known.word for known in MIXERS.definitions() if space in known.spaces)
        raise refuse("mixer", f"the space `{space}` has no mixer `{cell.mixer}`", allowed=able)
    model = cell.model
    if space is Space.IMAGE and model.width % 4:
        # Half of the features for the row, half for the column, each in pairs of sine and cosine.
        raise refuse("model.width", f"row and column share the width, and 4 does not divide {model.width}")
    divisor = task.head_divisor * model.heads
    if model.width % divisor:
        problem = (
            f"in {cell.task} each head has a multiple of {task.head_divisor} features, and {divisor} does not divide"
        )
        raise refuse("model.width", f"{problem} {model.width}")
    cell.settle(space=space)

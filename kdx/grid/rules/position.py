"""The space of a task's tokens and what it allows; positions: which schemes act, where, with which vector t."""

from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.grid.field_types import refuse
from kdx.grid.fields import CellFields
from kdx.grid.placement import attending, by_distance
from kdx.grid.words import SELF_ATTENTIONS
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


def resolve_position(cell: CellFields) -> None:
    """Settle `position`, `placement`, `inject`, `value` and `encoding`."""
    if "none" in cell.position:
        raise refuse("position", "`none` does not go together with a scheme", hint="write position: none")
    if len(set(cell.position)) < len(cell.position):
        raise refuse("position", "a position scheme stands twice")
    task = TASKS.definition(cell.task)
    has = task.attentions
    if cell.position and cell.placement and not set(cell.placement) & set(has):
        raise refuse("placement", f"{cell.task} has no {' and no '.join(cell.placement)}", allowed=", ".join(has))
    usual = Inject.PER_LAYER if task.spaces else Inject.INPUT
    summed = "direct-sum" in cell.position
    at_input = summed and (cell.inject or usual) is Inject.INPUT
    reached = has if at_input else attending(cell)
    native = SELF_ATTENTIONS if by_distance(cell.position) else has
    wanted = native if cell.placement is None else cell.placement
    placement = tuple(attention for attention in reached if attention in wanted) if cell.position else ()
    position = tuple(scheme for scheme in POSITIONS if scheme in cell.position) if placement else ()
    inject = (cell.inject or usual) if "direct-sum" in position else None
    value = cell.value
    if inject is Inject.INPUT:
        # Above the first layer f and t are mixed for good, so the value cannot be free of t.
        if value == "without-position":
            raise refuse(
                "value",
                "direct-sum at the input puts the position into every value",
                hint="write inject: per-layer to keep f and t apart (Eq. 8)",
            )
        if placement != has:
            raise refuse(
                "placement",
                "direct-sum at the input reaches every attention",
                hint="write inject: per-layer to place it",
            )
        value = value or "with-position"
    if value is None or not (at_input or reached):
        value = "without-position"
    uses_vector = not by_distance(position) or VALUES.definition(value).uses_vector
    encoding = (cell.encoding or "sinusoidal") if uses_vector else None
    cell.settle(position=position, placement=placement, inject=inject, value=value, encoding=encoding)

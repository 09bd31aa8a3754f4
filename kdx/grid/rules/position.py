"""Positions: which schemes act, where, with which vector t, and what the values have of them."""

from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.grid.field_types import refuse
from kdx.grid.fields import CellFields
from kdx.grid.placement import attending, by_distance
from kdx.grid.words import SELF_ATTENTIONS
from kdx.tasks import TASKS
from kdx.vocabulary import Inject


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

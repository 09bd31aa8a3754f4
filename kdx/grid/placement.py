"""What acts inside each of the three attentions of a cell: positions, value function, filter."""

from collections.abc import Iterable

from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.grid.fields import CellFields
from kdx.grid.words import SELF_ATTENTIONS
from kdx.tasks import TASKS
from kdx.vocabulary import Attention, Inject


def by_distance(schemes: Iterable[str]) -> bool:
    """Whether all of them see distances only; Shaw et al. and Dai et al. use such schemes in self-attention alone."""
    return not any(POSITIONS.definition(scheme).uses_vector for scheme in schemes if scheme != "none")


def attending(cell: CellFields) -> tuple[Attention, ...]:
    """The task's attentions that no other mixer stands in for."""
    attentions = TASKS.definition(cell.task).attentions
    if cell.mixer == "attention":
        return attentions
    return tuple(attention for attention in attentions if attention not in SELF_ATTENTIONS)


def positions_in(cell: CellFields, attention: Attention) -> tuple[str, ...]:
    """The schemes that act inside `attention`; a direct sum at the input acts before it."""
    schemes = cell.position if cell.placement and attention in cell.placement else ()
    if attention is Attention.ENCODER_DECODER and not by_distance(schemes):
        # Beside an absolute scheme, a scheme of distances acts only within one text, where distances are defined.
        schemes = tuple(scheme for scheme in schemes if POSITIONS.definition(scheme).uses_vector)
    return tuple(scheme for scheme in schemes if not (scheme == "direct-sum" and cell.inject is Inject.INPUT))


def value_in(cell: CellFields, attention: Attention) -> str:
    """The value function inside `attention`: t enters only where it is placed, and not again if the input has it."""
    value = cell.value or "without-position"
    known = VALUES.definition(value)
    if known.uses_weights or known.of_distance:
        places = cell.placement if cell.placement and by_distance(cell.position) else SELF_ATTENTIONS
        return value if attention in places else "without-position"
    placed = not cell.placement or attention in cell.placement
    free = known.uses_vector and (cell.inject is Inject.INPUT or not placed)
    return "without-position" if free else value


def filter_in(cell: CellFields, attention: Attention) -> str:
    """M(x_q, S) of `attention`."""
    filters = cell.filter
    return {
        Attention.ENCODER_SELF: filters.encoder_self,
        Attention.ENCODER_DECODER: filters.encoder_decoder,
        Attention.DECODER_SELF: filters.decoder_self,
    }[attention]

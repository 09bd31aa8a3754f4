"""Options: those of words that the cell does not have come to nothing, and those of its words get their defaults."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticCustomError

from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.mixers import MIXERS
from kdx.attention.positions import POSITIONS
from kdx.definitions import Option
from kdx.errors import did_you_mean
from kdx.grid.fields import CellFields
from kdx.grid.placement import attending, filter_in, positions_in
from kdx.grid.sections import Filters, refuse
from kdx.grid.words import SELF_ATTENTIONS, known_options, options_in
from kdx.tasks import TASKS
from kdx.vocabulary import Attention, Symmetry


def resolve_options(cell: CellFields) -> None:
    """Settles the filters of attentions that the task lacks, and every option of a word."""
    has = TASKS[cell.task].attentions
    default = Filters()
    foreign = [one.value.replace("-", "_") for one in Attention if one not in has]
    cell.settle(filter=cell.filter.model_copy(update={name: getattr(default, name) for name in foreign}))
    _refuse_uneven(cell)
    _refuse_filters(cell)
    _refuse_later_keys(cell)
    if not attending(cell):
        cell.settle(kernel="exponential", normaliser=None, symmetry=Symmetry.ASYMMETRIC)
    known = options_in(_words(cell))
    given = {name: value for name, value in cell.options.items() if value is not None}
    others = given.keys() - known.keys()
    if others and (unknown := others - known_options().keys()):
        name = min(unknown)
        names = (*type(cell).model_fields, *known)
        context = {"key": name, "allowed": names, "hint": did_you_mean(name, names)}
        raise PydanticCustomError("unknown_key", "unknown key", context)
    if "xl_bias" in known and cell.symmetry is Symmetry.SYMMETRIC:
        if given.get("xl_bias", "none") != "none":
            raise refuse("xl_bias", "with u a symmetric kernel is not symmetric", allowed="none")
        given["xl_bias"] = "none"
    _settle_rotation(given)
    values = {name: _value(one, given.get(name, one.default)) for name, one in known.items()}
    if values.get("summary", 0) > values.get("stride", 0):
        problem, allowed = f"{values['summary']} tokens of a block of {values['stride']}", f"0 to {values['stride']}"
        raise refuse("summary", problem, allowed=allowed)
    _refuse_share(cell, values)
    neutral = {name for name, one in known.items() if one.neutral and values[name] == one.default}
    cell.settle_options(values, neutral)


def _words(cell: CellFields) -> Mapping[str, Any]:
    """The cell's words in plain words; a dump of the whole cell takes ten times as long."""
    return {
        "task": cell.task,
        "space": cell.space,
        "mixer": cell.mixer,
        "kernel": cell.kernel,
        "normaliser": cell.normaliser,
        "position": cell.position,
        "value": cell.value,
        "encoding": cell.encoding,
        "filter": {attention.value: filter_in(cell, attention) for attention in Attention},
    }


def _value(option: Option, given: Any) -> Any:
    try:
        return option.value(given)
    except ValueError:
        if option.words:
            problem, hint = f"unknown {option.name} `{given}`", did_you_mean(str(given), option.words)
        else:
            problem, hint = f"`{given}` as {option.name}", None
        raise refuse(option.name, problem, allowed=option.allowed, hint=hint) from None


def _refuse_uneven(cell: CellFields) -> None:
    head_width = cell.model.width // cell.model.heads
    for scheme in map(POSITIONS.definition, cell.position):
        if scheme.even == "head_width" and head_width % 2:
            raise refuse("model.heads", f"{scheme.word} turns pairs of features, and a head has {head_width}")
        if scheme.even == "width" and cell.model.width % 2:
            raise refuse("model.width", f"sinusoids need an even width, not {cell.model.width}")
    if cell.encoding and ENCODINGS.definition(cell.encoding).even == "width" and cell.model.width % 2:
        raise refuse("model.width", f"sinusoids need an even width, not {cell.model.width}")


def _settle_rotation(given: dict[str, Any]) -> None:
    """Leaves out what only another scaling of the angles uses, so that it makes no other cell."""
    scaling = given.get("rotary_scaling", "none")
    if scaling == "none":
        given.pop("rotary_factor", None)
    elif "rotary_factor" not in given:
        problem = f"{scaling} scales by a factor, and there is none"
        raise refuse("rotary_scaling", problem, hint="write rotary_factor, such as 4")
    if scaling != "yarn":
        given.pop("original_length", None)


def _refuse_share(cell: CellFields, values: Mapping[str, Any]) -> None:
    head_width = cell.model.width // cell.model.heads
    turning = values.get("rotary_share", 1.0) * head_width
    if "rotary_share" in values and (turning != round(turning) or turning % 2):
        problem = f"{values['rotary_share']:g} of the {head_width} features of a head is {turning:g}"
        shares = ", ".join(f"{part / head_width:g}" for part in range(2, head_width + 1, 2) if head_width % part == 0)
        raise refuse("rotary_share", problem, allowed=f"a share that is an even number of features, such as {shares}")


def _refuse_later_keys(cell: CellFields) -> None:
    """A scheme that has a meaning for the past alone acts only where no query sees a later key."""
    for scheme in map(POSITIONS.definition, cell.position):
        if not scheme.past_only:
            continue
        for attention in attending(cell):
            word = filter_in(cell, attention)
            known = FILTERS.definition(word)
            past = known.triangular or (attention is Attention.DECODER_SELF and not known.sees_later)
            if scheme.word not in positions_in(cell, attention) or (past and attention in SELF_ATTENTIONS):
                continue
            if attention not in SELF_ATTENTIONS:
                problem = f"{scheme.word} reads the tokens between query and key, which stand in two texts here"
                raise refuse("placement", problem, allowed=", ".join(SELF_ATTENTIONS))
            allowed = ", ".join(one.word for one in FILTERS.definitions() if one.triangular)
            hint = "or write placement: decoder-self" if Attention.DECODER_SELF in attending(cell) else None
            problem = f"{scheme.word} has no meaning for keys after the query, which `{word}` shows"
            raise refuse(f"filter.{attention}", problem, allowed=allowed, hint=hint)


def _refuse_filters(cell: CellFields) -> None:
    mixer = MIXERS.definition(cell.mixer)
    unable = {filter_in(cell, attention) for attention in TASKS[cell.task].attentions} - set(mixer.filters or FILTERS)
    if unable:
        problem = f"the {cell.mixer} mixer has no filter {', '.join(sorted(unable))}"
        raise refuse("filter", problem, allowed=", ".join(mixer.filters))

"""Options: drops those of words that the cell does not have, and gives those of its words their defaults."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.mixers import MIXERS
from kdx.attention.positions import POSITIONS
from kdx.grid.fields import CellFields
from kdx.grid.placement import attending, filter_in
from kdx.grid.sections import Filters, refuse
from kdx.grid.words import known_options, options_in
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
    if not attending(cell):
        cell.settle(kernel="exponential", normaliser=None, symmetry=Symmetry.ASYMMETRIC)
    own = options_in(words_of(cell))
    if "xl_bias" in own and cell.symmetry is Symmetry.SYMMETRIC:
        if cell.option("xl_bias") not in (None, "none"):
            raise refuse("xl_bias", "with u a symmetric kernel is not symmetric", allowed="none")
        own["xl_bias"] = replace(own["xl_bias"], default="none")
    cell.settle_options(own, known_options)
    summary, stride = cell.option("summary"), cell.option("stride")
    if summary is not None and stride is not None and summary > stride:
        raise refuse("summary", f"{summary} tokens of a block of {stride}", allowed=f"0 to {stride}")


def words_of(cell: CellFields) -> Mapping[str, Any]:
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


def _refuse_uneven(cell: CellFields) -> None:
    head_width = cell.model.width // cell.model.heads
    for scheme in map(POSITIONS.definition, cell.position):
        if scheme.even == "head_width" and head_width % 2:
            raise refuse("model.heads", f"{scheme.word} turns pairs of features, and a head has {head_width}")
        if scheme.even == "width" and cell.model.width % 2:
            raise refuse("model.width", f"sinusoids need an even width, not {cell.model.width}")
    if cell.encoding and ENCODINGS.definition(cell.encoding).even == "width" and cell.model.width % 2:
        raise refuse("model.width", f"sinusoids need an even width, not {cell.model.width}")


def _refuse_filters(cell: CellFields) -> None:
    mixer = MIXERS.definition(cell.mixer)
    unable = {filter_in(cell, attention) for attention in TASKS[cell.task].attentions} - set(mixer.filters or FILTERS)
    if unable:
        problem = f"the {cell.mixer} mixer has no filter {', '.join(sorted(unable))}"
        raise refuse("filter", problem, allowed=", ".join(mixer.filters))

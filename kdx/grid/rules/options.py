"""Options of words: those of a word that the cell does not have come to nothing; those it has get their defaults."""

from collections.abc import Iterator

from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.definitions import Definition
from kdx.grid.fields import CellFields
from kdx.grid.placement import attending, filter_in
from kdx.grid.sections import Filters, refuse
from kdx.tasks import TASKS
from kdx.vocabulary import Attention, Scale, Symmetry, Tables, XLBias


def resolve_options(cell: CellFields) -> None:
    """Settles the filters of attentions that the task lacks, and every option of a word."""
    has = TASKS[cell.task].attentions
    default = Filters()
    foreign = [one.value.replace("-", "_") for one in Attention if one not in has]
    cell.settle(filter=cell.filter.model_copy(update={name: getattr(default, name) for name in foreign}))
    takes = {option for known in definitions(cell) for option in known.options}
    kernel, mixer = KERNELS.definition(cell.kernel), MIXERS.definition(cell.mixer)
    symmetric = cell.symmetry is Symmetry.SYMMETRIC
    if "xl_bias" in takes and symmetric and cell.xl_bias not in (None, XLBias.NONE):
        raise refuse("xl_bias", "with u a symmetric kernel is not symmetric", allowed="none")
    if cell.scale is Scale.UNSCALED and "scale" not in kernel.options:
        raise refuse("scale", f"the {cell.kernel} kernel is defined with its scale", allowed="scaled")
    if cell.temperature != 1 and "temperature" not in kernel.options:
        raise refuse("temperature", f"the {cell.kernel} kernel has none", allowed="1")
    head_width = cell.model.width // cell.model.heads
    for scheme in map(POSITIONS.definition, cell.position):
        if scheme.even == "head_width" and head_width % 2:
            raise refuse("model.heads", f"{scheme.word} turns pairs of features, and a head has {head_width}")
        if scheme.even == "width" and cell.model.width % 2:
            raise refuse("model.width", f"sinusoids need an even width, not {cell.model.width}")
    unable = {filter_in(cell, attention) for attention in has} - set(mixer.filters or FILTERS)
    if unable:
        problem = f"the {cell.mixer} mixer has no filter {', '.join(sorted(unable))}"
        raise refuse("filter", problem, allowed=", ".join(mixer.filters))
    if not attending(cell):
        neutral = {"symmetry": Symmetry.ASYMMETRIC, "scale": Scale.SCALED}
        cell.settle(kernel="exponential", normaliser=None, temperature=1.0, **neutral)
    stride = (cell.stride or 16) if "stride" in takes else None
    summary = (2 if cell.summary is None else cell.summary) if "summary" in takes else None
    if summary is not None and stride is not None and summary > stride:
        raise refuse("summary", f"{summary} tokens of a block of {stride}", allowed=f"0 to {stride}")
    relative_bias = cell.xl_bias or (XLBias.NONE if symmetric else XLBias.LEARNED)
    cell.settle(
        neighbours=(2 if cell.neighbours is None else cell.neighbours) if "neighbours" in takes else None,
        clip=(16 if cell.clip is None else cell.clip) if "clip" in takes else None,
        sharing=(cell.sharing or Tables.PER_HEAD) if "sharing" in takes else None,
        xl_bias=relative_bias if "xl_bias" in takes else None,
        position_dropout=(cell.position_dropout or 0.0) if "position_dropout" in takes else None,
        stride=stride,
        summary=summary,
    )


def definitions(cell: CellFields) -> Iterator[Definition]:
    """What is known of each word that the cell computes with."""
    yield KERNELS.definition(cell.kernel)
    yield MIXERS.definition(cell.mixer)
    yield from map(POSITIONS.definition, cell.position)
    if cell.value:
        yield VALUES.definition(cell.value)
    if cell.encoding:
        yield ENCODINGS.definition(cell.encoding)
    for attention in TASKS[cell.task].attentions:
        yield FILTERS.definition(filter_in(cell, attention))

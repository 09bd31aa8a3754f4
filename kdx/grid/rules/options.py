"""Options: drops those of words that the cell does not have, and gives those of its words their defaults."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from kdx.attention.encodings import ENCODINGS
from kdx.attention.families import FAMILIES
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.grid.field_types import refuse
from kdx.grid.fields import CellFields, FrozenDict
from kdx.grid.placement import attending, filter_in, positions_in
from kdx.grid.sections import Filter
from kdx.grid.words import SELF_ATTENTIONS, known_options, options_in, words_in
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.vocabulary import (
    Attention,
    Maps,
    OutputGate,
    Precision,
    Projection,
    QKNorm,
    Smoother,
    Space,
    Symmetry,
    ValueProjection,
)
from kdx.words.component import Component
from kdx.words.family import cached_over_words
from kdx.words.option import Option


def resolve_options(cell: CellFields) -> None:
    """Settle the filters of attentions that the task lacks, and every option of a word."""
    has = TASKS.definition(cell.task).attentions
    cell.settle(filter=cell.filter.model_copy(update=_filters_of_others(has)))
    _refuse_uneven(cell)
    _refuse_filters(cell)
    _refuse_later_keys(cell)
    if attending(cell):
        _refuse_normaliser(cell)
        _refuse_choices(cell)
        if cell.projection is Projection.NONE:
            cell.settle(symmetry=Symmetry.SYMMETRIC)  # queries and keys are the same features
        _settle_kv_heads(cell)
    else:
        cell.settle(kernel="exponential", normaliser=None, symmetry=Symmetry.ASYMMETRIC)
        cell.settle(qk_norm=QKNorm.NONE, kv_heads=None, maps=Maps.SINGLE, output_gate=OutputGate.NONE)
        cell.settle(projection=Projection.LINEAR, value_projection=ValueProjection.OWN)
        cell.settle(smoother=Smoother.LOCAL_CONSTANT)
    own = dict(_options_of(_words_of(cell)))
    if "xl_bias" in own and cell.symmetry is Symmetry.SYMMETRIC:
        if cell.option("xl_bias") not in (None, "none"):
            raise refuse("xl_bias", "with u a symmetric kernel is not symmetric", allowed="none")
        own["xl_bias"] = replace(own["xl_bias"], default="none")
    cell.judge_options(own, known_options)
    _settle_rotation(cell)
    cell.settle_options(own)
    summary, stride = cell.option("summary"), cell.option("stride")
    if summary is not None and stride is not None and summary > stride:
        raise refuse("summary", f"{summary} tokens of a block of {stride}", allowed=f"0 to {stride}")
    _refuse_share(cell)


@cache
def _filters_of_others(attentions: tuple[Attention, ...]) -> Mapping[str, str]:
    """Return the filters of the attentions that a task lacks."""
    names = (attention.value.replace("-", "_") for attention in Attention if attention not in attentions)
    return {name: getattr(Filter(), name) for name in names}


_WORDS = ("task", "space", "mixer", "kernel", "normaliser", "position", "value", "encoding", "filter")
"""The fields that have the words of a cell. Thousands of cells of a grid have few combinations of them."""


def _words_of(cell: CellFields) -> tuple[Any, ...]:
    """Return the values of these fields; a dump of the whole cell takes ten times as long."""
    return tuple(getattr(cell, field) for field in _WORDS)


def _plain(words: tuple[Any, ...]) -> Mapping[str, Any]:
    *others, filters = words
    return dict(zip(_WORDS, (*others, filters.model_dump(by_alias=True)), strict=True))


@cached_over_words
def _options_of(words: tuple[Any, ...]) -> Mapping[str, Option]:
    return options_in(_plain(words))


def _refuse_uneven(cell: CellFields) -> None:
    head_width, who = cell.model.width // cell.model.heads, "a head"
    if cell.maps is Maps.DIFFERENTIAL and attending(cell):
        if head_width % 2:
            raise refuse("model.heads", f"two maps share the features of a head, and a head has {head_width}")
        head_width, who = head_width // 2, "a map"
    if cell.value and VALUES.definition(cell.value).turns_pairs and cell.model.width // cell.model.heads % 2:
        raise refuse("model.heads", f"value {cell.value} turns pairs of features, and a head's width is odd")
    for scheme in map(POSITIONS.definition, cell.position):
        if scheme.even == "head_width" and head_width % 2:
            raise refuse("model.heads", f"{scheme.word} turns pairs of features, and {who} has {head_width}")
        if scheme.even == "width" and cell.model.width % 2:
            raise refuse("model.width", f"sinusoids need an even width, not {cell.model.width}")
    if cell.encoding and ENCODINGS.definition(cell.encoding).even == "width" and cell.model.width % 2:
        raise refuse("model.width", f"sinusoids need an even width, not {cell.model.width}")


_ONLY_CHOICES = (
    ("maps", Maps.SINGLE, (Space.GRAPH, Space.MULTIMODAL)),
    ("projection", Projection.LINEAR, (Space.MULTIMODAL,)),
    ("smoother", Smoother.LOCAL_CONSTANT, (Space.GRAPH,)),
)
"""A field, and its only value in attentions of some spaces."""


_SUMS_IN_COLUMNS = frozenset({"alibi", "forgetting"})
"""Positions whose long sums attention gets as columns of queries and keys."""


def _refuse_choices(cell: CellFields) -> None:
    for name, only, spaces in _ONLY_CHOICES:
        value = getattr(cell, name)
        if value is not only and cell.space in spaces:
            raise refuse(name, f"the space `{cell.space}` has no {name}: {value}", allowed=only)
    if cell.smoother is Smoother.LOCAL_LINEAR:
        normaliser = cell.normaliser or KERNELS.definition(cell.kernel).normaliser
        problem = "a line is fitted with weights that are positive and sum to 1, unlike those of"
        if KERNELS.definition(cell.kernel).gives == "signed weight":
            raise refuse("smoother", f"{problem} the {cell.kernel} kernel", allowed=Smoother.LOCAL_CONSTANT)
        if cell.training.precision is Precision.BF16:
            problem = "a line is fitted by linear systems, which bf16 lacks the digits for"
            raise refuse("training.precision", problem, allowed=Precision.FP32)
        if normaliser != "row-sum":
            raise refuse("smoother", f"{problem} {normaliser}", allowed=Smoother.LOCAL_CONSTANT, hint="or row-sum")
    # Their queries are in 32 bits, and then the columns of `kdx.attention.columns` have no parts for half precision.
    in_32_bits = cell.qk_norm is QKNorm.RMS or cell.projection is Projection.NONE
    if cell.training.precision is Precision.BF16 and in_32_bits and _SUMS_IN_COLUMNS & set(cell.position):
        problem = f"bf16 lacks the digits for {'/'.join(cell.position)} beside qk_norm rms or projection none"
        raise refuse("training.precision", problem, allowed=Precision.FP32)


_LACKS = {"weight": "which gives no logarithm of its weights", "signed weight": "whose weights have a sign"}


def _refuse_normaliser(cell: CellFields) -> None:
    gives = KERNELS.definition(cell.kernel).gives
    if cell.normaliser is not None and gives not in NORMALISERS.definition(cell.normaliser).kernels:
        problem = f"{cell.normaliser} has no meaning for the {cell.kernel} kernel, {_LACKS[gives]}"
        allowed = ", ".join(known.word for known in NORMALISERS.definitions() if gives in known.kernels)
        raise refuse("normaliser", problem, allowed=allowed)


def _settle_kv_heads(cell: CellFields) -> None:
    heads, shared = cell.model.heads, cell.kv_heads
    if shared is None or shared == heads:
        cell.settle(kv_heads=None)
        return
    if heads % shared:
        divisors = ", ".join(str(count) for count in range(1, heads + 1) if heads % count == 0)
        raise refuse("kv_heads", f"{shared} do not divide {heads} heads", allowed=divisors)
    if cell.symmetry is Symmetry.SYMMETRIC:
        problem = f"a symmetric kernel has one projection for {heads} heads of queries and keys"
        raise refuse("kv_heads", problem, allowed=f"{heads}, or symmetry: asymmetric")


def _settle_rotation(cell: CellFields) -> None:
    """Leave out what only another scaling of the angles uses, so that it makes no other cell."""
    scaling = cell.option("rotary_scaling") or "none"
    if scaling == "none":
        cell.leave_out("rotary_factor")
    elif cell.option("rotary_factor") is None:
        problem = f"{scaling} scales by a factor, and there is none"
        raise refuse("rotary_scaling", problem, hint="write rotary_factor, such as 4")
    if scaling != "yarn":
        cell.leave_out("original_length")


def _refuse_share(cell: CellFields) -> None:
    share = cell.option("rotary_share")
    head_width = cell.model.width // cell.model.heads // (2 if cell.maps is Maps.DIFFERENTIAL else 1)
    turning = 0 if share is None else share * head_width
    if turning != round(turning) or turning % 2:
        problem = f"{share:g} of the {head_width} features of a head is {turning:g}"
        shares = ", ".join(f"{part / head_width:g}" for part in range(2, head_width + 1, 2) if head_width % part == 0)
        raise refuse("rotary_share", problem, allowed=f"a share that is an even number of features, such as {shares}")


def _refuse_later_keys(cell: CellFields) -> None:
    """What has a meaning for the past alone acts only where no query sees a later key."""
    normaliser = cell.normaliser or KERNELS.definition(cell.kernel).normaliser
    past_only = [known.word for known in map(POSITIONS.definition, cell.position) if known.past_only]
    past_only += [normaliser] if NORMALISERS.definition(normaliser).past_only else []
    for name in past_only:
        placed = name in cell.position
        # A normaliser acts in all attentions, and no filter helps where keys are of another text.
        attentions = attending(cell) if placed else sorted(attending(cell), key=SELF_ATTENTIONS.__contains__)
        for attention in attentions:
            word = filter_in(cell, attention)
            filter = FILTERS.definition(word)
            past = filter.triangular or (attention is Attention.DECODER_SELF and not filter.sees_later)
            acts = not placed or name in positions_in(cell, attention)
            if not acts or (past and attention in SELF_ATTENTIONS):
                continue
            if attention not in SELF_ATTENTIONS:
                problem = f"{name} reads the tokens between query and key, which stand in two texts here"
                if placed:
                    raise refuse("placement", problem, allowed=", ".join(SELF_ATTENTIONS))
                others = ", ".join(known.word for known in NORMALISERS.definitions() if not known.past_only)
                raise refuse("normaliser", problem, allowed=others, hint="or a task with self-attention alone")
            allowed = ", ".join(known.word for known in FILTERS.definitions() if known.triangular)
            only = placed and Attention.DECODER_SELF in attending(cell)
            hint = "or write placement: decoder-self" if only else None
            problem = f"{name} has no meaning for keys after the query, which `{word}` shows"
            raise refuse(f"filter.{attention}", problem, allowed=allowed, hint=hint)


def _refuse_filters(cell: CellFields) -> None:
    mixer = MIXERS.definition(cell.mixer)
    unable = {filter_in(cell, attention) for attention in TASKS.definition(cell.task).attentions} - set(
        mixer.filters or FILTERS
    )
    if unable:
        problem = f"the {cell.mixer} mixer has no filter {', '.join(sorted(unable))}"
        raise refuse("filter", problem, allowed=", ".join(mixer.filters))


def resolve_components(cell: CellFields) -> None:
    """Settle `components`; a hash that was given must be that of the source at hand."""
    used: dict[str, Component] = {}
    # Few grids have any, and those that have none may have ten thousand cells.
    if any(family.outside for family in (*FAMILIES, TASKS)):
        words = words_in(_plain(_words_of(cell)))
        used = {word: family.outside[word] for family, word in words if word in family.outside}
    if cell.data.corpus in DIFFICULTIES.outside:
        used[cell.data.corpus] = DIFFICULTIES.outside[cell.data.corpus]
    for word, component in used.items():
        if cell.components.get(word, component.sha256) != component.sha256:
            problem = f"the source of `{word}` at hand is not the one that the cell was made with"
            raise refuse("components", problem, hint="kdx export --components --to FOLDER writes that one out")
    cell.settle(components=FrozenDict({word: component.sha256 for word, component in sorted(used.items())}))

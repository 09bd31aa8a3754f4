"""Cells selected by the names of their factors, as a baseline, a published cell or a claim writes them.

A factor is a field of the resolved cell, with its section where it has one: `kernel`, `training.steps`,
`filter.decoder-self`. Its value is compared as a word: the grid's own, with schemes or attentions that act together
joined.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from kdx.attention.positions import POSITIONS
from kdx.errors import KdxError, shortened
from kdx.grid.layers import is_choice
from kdx.grid.sections import Data
from kdx.grid.spec import CellSpec
from kdx.grid.synonyms import did_you_mean
from kdx.grid.words import known_options
from kdx.tasks.corpora import options_of_corpora
from kdx.vocabulary import Attention
from kdx.words import table
from kdx.words.family import cached_over_words
from kdx.words.option import Option

_WHOLE = re.compile(r"-?[0-9]+\.0")
_OF_LAYER = re.compile(r"(?P<layer>layers\.(encoder|decoder) [1-9][0-9]*)\.(?P<factor>.+)", re.ASCII)
_ORDER: dict[str, Collection[str]] = {"position": POSITIONS, "placement": tuple(Attention)}


@cached_over_words
def factors() -> tuple[str, ...]:
    """Return every factor that a cell can have, in the order of the spec; then the options of custom components."""
    return tuple(dict.fromkeys((*table.factors(), *options())))


@cached_over_words
def options() -> dict[str, Option]:
    """Return factor → option, for the factors that only a cell with certain names has."""
    of_corpora = {f"data.{name}": declared[0] for name, declared in options_of_corpora().items()}
    return known_options() | of_corpora


@cached_over_words
def settings() -> tuple[str, ...]:
    """Return every key that a cell can have at its top."""
    return (*CellSpec.model_fields, *known_options())


def in_layer(factor: str) -> tuple[str, str]:
    """Return the layer and the factor in it: `layers.decoder 2.position` is `layers.decoder 2` and `position`.

    Of any other factor, the layer is empty.
    """
    match = _OF_LAYER.fullmatch(factor)
    return (match["layer"], match["factor"]) if match else ("", factor)


def lacks(spec: CellSpec, factor: str) -> bool:
    """Return whether the factor is an option that no name of the cell has."""
    section, _, name = factor.rpartition(".")
    return factor in options() and name not in (spec.data if section == "data" else spec).options


@cached_over_words
def default_word(factor: str) -> str | None:
    """Return the word of a factor that a cell does not set, before its other names settle it; None if required."""
    if factor in options():
        return word(factor, options()[factor].default)
    required = ""
    unsettled = CellSpec.model_construct(task=required, data=Data.model_construct(corpus=required))
    defaults = dict(leaves(unsettled.model_dump(mode="json", by_alias=True)))
    return None if defaults[factor] == required else word(factor, defaults[factor])


def leaves(cell: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every field of a cell, or of settings, with its dotted path."""
    for key, value in cell.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def word(factor: str, value: Any) -> str:
    """Return a value as a word: position schemes joined by `+`, other lists by `/`, an empty list is `none`."""
    if isinstance(value, list | tuple):
        return ("+" if factor.rpartition(".")[2] == "position" else "/").join(map(str, value)) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def as_word(factor: str, value: Any) -> str:
    """Return a value that a file has as the word of a resolved cell: `product+lookup` is `lookup+product`."""
    if isinstance(value, str):
        value = _names(factor, value)
    if isinstance(value, list | tuple) and in_layer(factor)[1] in _ORDER:
        order = tuple(_ORDER[in_layer(factor)[1]])
        value = sorted(value, key=lambda name: order.index(name) if name in order else len(order))
    return word(factor, value)


def _names(factor: str, word: str) -> list[str]:
    """Return the names that a word joins."""
    _, factor = in_layer(factor)
    return re.split("[+/]" if factor == "placement" else "[+]", word) if factor in _ORDER else [word]


def plain_number(word: str) -> str:
    """Return a whole number as the word that it has however it is written: `1.0` is `1`."""
    return word.removesuffix(".0") if _WHOLE.fullmatch(word) else word


def same_word(word: str | None, wanted: str) -> bool:
    """Return whether a cell's word is the one of a selector: `2.0` is `2`."""
    return word is not None and plain_number(word) == plain_number(wanted)


def _in_words(value: Any) -> Any:
    """Return a mapping with its values as words; pydantic refuses what is none, and mappings within it."""
    if not isinstance(value, Mapping):
        return value
    return {factor: inner if isinstance(inner, Mapping) else as_word(factor, inner) for factor, inner in value.items()}


ANY_WORDS = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null", "array"]}}
CellSelector = Annotated[dict[str, str], BeforeValidator(_in_words), WithJsonSchema(ANY_WORDS)]
"""Factor → word; in YAML a name, a number or a list, as in a grid."""


def unknown(
    selector: Mapping[str, str], recorded: Mapping[str, Collection[str]] = MappingProxyType({})
) -> Iterator[tuple[str, KdxError]]:
    """Yield each factor of a selector that no cell has, or whose name kdx does not know, with the error.

    Args:
        recorded: factor → the words that cells of custom components have, which may be named as well.
    """
    every = tuple(dict.fromkeys((*factors(), *recorded)))
    for factor, wanted in selector.items():
        layer, own = in_layer(factor)
        if layer and is_choice(("layers", layer, *own.split("."))):
            yield from ((factor, fault) for _, fault in unknown({own: wanted}, recorded))
        elif factor not in every:
            problem = f"unknown factor `{shortened(factor)}`"
            yield factor, KdxError(problem, allowed=every, hint=did_you_mean(factor, every))
        elif factor in table.factors() and wanted not in recorded.get(factor, ()):
            known = table.factors()[factor].names
            for name in _names(factor, wanted):
                if known and name not in known:
                    problem = f"unknown {factor} `{shortened(name)}`"
                    yield factor, KdxError(problem, allowed=known, hint=did_you_mean(name, known))

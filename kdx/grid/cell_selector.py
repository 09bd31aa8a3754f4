"""Cells named by the words of their factors, as a baseline, a published cell or a claim names them.

A factor is a field of the resolved cell, with its section where it has one: `kernel`, `training.steps`,
`filter.decoder-self`. Its word is the grid's; schemes or attentions that stand together are joined.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, WithJsonSchema
from pydantic.fields import FieldInfo

from kdx.attention.families import FAMILIES
from kdx.attention.positions import POSITIONS
from kdx.errors import KdxError, shortened
from kdx.grid.sections import OneOf
from kdx.grid.spec import CellSpec
from kdx.grid.synonyms import did_you_mean
from kdx.grid.words import known_options
from kdx.tasks.corpora import options_of_corpora
from kdx.vocabulary import Attention
from kdx.words.family import cached_over_words
from kdx.words.option import Option

_ABSENT = object()
_WHOLE = re.compile(r"-?[0-9]+\.0")
_ORDER: dict[str, Collection[str]] = {"position": POSITIONS, "placement": tuple(Attention)}


def word(factor: str, value: Any) -> str:
    """A choice of `factor` in words: position schemes joined by `+`, other lists by `/`, an empty list is `none`."""
    if isinstance(value, list | tuple):
        return ("+" if factor == "position" else "/").join(map(str, value)) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def plain_number(word: str) -> str:
    """A whole number in the word that it has however it is written: `1.0` is `1`."""
    return word.removesuffix(".0") if _WHOLE.fullmatch(word) else word


def same_word(word: str | None, wanted: str) -> bool:
    """Whether a cell's word is the one of a selector: `2.0` is `2`."""
    return word is not None and plain_number(word) == plain_number(wanted)


def _worded(value: Any) -> Any:
    """Every choice of a mapping in words; what is no mapping stays for pydantic to refuse."""
    if not isinstance(value, Mapping):
        return value
    return {
        factor: choice if isinstance(choice, Mapping) else word(factor, _ordered(factor, choice))
        for factor, choice in value.items()
    }


def _ordered(factor: str, choice: Any) -> Any:
    """As a resolved cell has it, whatever the order in which the words were written."""
    if not isinstance(choice, list | tuple) or factor not in _ORDER:
        return choice
    order = tuple(_ORDER[factor])
    return sorted(choice, key=lambda one: order.index(one) if one in order else len(order))


def as_word(factor: str, value: Any) -> str:
    """A choice as a grid writes it, in the word that a resolved cell has: `product+lookup` is `lookup+product`."""
    if isinstance(value, str) and factor in _ORDER:
        value = [] if value == "none" else re.split("[+/]", value)
    return word(factor, _ordered(factor, value))


@cached_over_words
def default_word(factor: str) -> str | None:
    """The word of a factor that a cell does not set, before its other words settle it; None: it must be set."""
    if factor in _options():
        return word(factor, _options()[factor][0].default)
    model: type[BaseModel] = CellSpec
    for step in factor.split("."):
        info = next(info for name, info in model.model_fields.items() if step in (name, info.alias))
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            model = info.annotation
    return None if info.is_required() else word(factor, info.get_default(call_default_factory=True))


_CHOICES = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null", "array"]}}
CellSelector = Annotated[dict[str, str], BeforeValidator(_worded), WithJsonSchema(_CHOICES)]
"""Factor → word; in YAML a word, a number or a list, as in a grid."""


def choice(spec: Mapping[str, Any], factor: str) -> str | None:
    """The word of `factor` in a resolved cell; None when it has no such field."""
    value: Any = spec
    for step in factor.split("."):
        value = value.get(step, _ABSENT) if isinstance(value, Mapping) else _ABSENT
    if value is _ABSENT and is_option(factor):
        return "none"
    return None if value is _ABSENT or isinstance(value, Mapping) else word(factor, value)


def is_option(factor: str) -> bool:
    """Whether the factor is an option, which a cell has only if one of its words declares it."""
    return factor in _options()


def without_effect(spec: CellSpec, factor: str) -> bool:
    """Whether the factor is an option that no word of the cell has."""
    section, _, name = factor.rpartition(".")
    return is_option(factor) and name not in (spec.data if section == "data" else spec).options


@cached_over_words
def factors() -> tuple[str, ...]:
    """Every factor that a cell can have, in the order of the spec."""
    return tuple(_annotations())


@cached_over_words
def taken_axes(factor: str) -> frozenset[str]:
    """The axes that some word of an axis makes use of, such as the encoding; none for a factor that is no axis."""
    families = [family for family in FAMILIES if family.axis == factor.partition(".")[0]]
    return frozenset(axis for family in families for known in family.definitions() for axis in known.takes)


def unknown(
    selector: Mapping[str, str], recorded: Mapping[str, Collection[str]] = MappingProxyType({})
) -> Iterator[tuple[str, KdxError]]:
    """Each factor of a selector that no cell has, or whose word it does not know, with what is wrong.

    Args:
        recorded: factor → the words that cells of custom components have, which may be named as well.
    """
    every = tuple(dict.fromkeys((*factors(), *recorded)))
    for factor, wanted in selector.items():
        if factor not in every:
            problem = f"unknown factor `{shortened(factor)}`"
            yield factor, KdxError(problem, allowed=every, hint=did_you_mean(factor, every))
            continue
        if factor not in factors() or wanted in recorded.get(factor, ()):
            continue
        known = known_words(factor)
        for one in re.split("[+/]", wanted) if factor in _ORDER else [wanted]:
            if known and one not in known:
                problem = f"unknown {factor} `{shortened(one)}`"
                yield factor, KdxError(problem, allowed=known, hint=did_you_mean(one, known))


@cached_over_words
def _annotations() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, info in CellSpec.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            found |= {f"{field}.{inner.alias or key}": _whole(inner) for key, inner in section.model_fields.items()}
        elif field not in ("select", "components"):
            found[field] = _whole(info)
    for name, declared in _options().items():
        words = dict.fromkeys(word for one in declared for word in one.words)
        found[name] = Annotated[str, OneOf(words)] if words else object
    return found


@cached_over_words
def _options() -> dict[str, tuple[Option, ...]]:
    """The options of words, of tasks and of corpora: factor → what is declared under it."""
    of_corpora = {f"data.{name}": declared for name, declared in options_of_corpora().items()}
    return {name: (one,) for name, one in known_options().items()} | of_corpora


def _whole(field: FieldInfo) -> Any:
    """The annotation with what annotates it, which pydantic keeps apart."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def known_words(factor: str) -> tuple[str, ...]:
    """Return the names that a factor allows; none if it takes numbers or any text."""

    def within(annotation: Any) -> Iterator[str]:
        if isinstance(annotation, type) and issubclass(annotation, StrEnum):
            yield from annotation
        elif isinstance(annotation, OneOf):
            yield from annotation.words
        for inner in (*get_args(annotation), *getattr(annotation, "__metadata__", ())):
            yield from within(inner)

    words = list(map(str, within(_annotations()[factor])))
    return tuple(dict.fromkeys([*words, "none"])) if words else ()

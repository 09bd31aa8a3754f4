"""The names that a cell can have, and the options that come with them."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from kdx.attention.encodings import ENCODINGS
from kdx.attention.families import FAMILIES, options_of_words
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.tasks import TASKS
from kdx.tasks.corpora import DIFFICULTIES
from kdx.vocabulary import Attention, Space
from kdx.words.family import Family, cached_over_words
from kdx.words.option import Option

SELF_ATTENTIONS = (Attention.ENCODER_SELF, Attention.DECODER_SELF)


def words_in(plain: Mapping[str, Any]) -> Iterator[tuple[Family[Any, Any], str]]:
    """Return the known names that a resolved cell, in plain values, computes with, and the family of each."""
    return ((family, word) for family, word in chosen_in(plain) if word in family)


def chosen_in(plain: Mapping[str, Any]) -> Iterator[tuple[Family[Any, Any], str]]:
    """Return these names, and those that this kdx does not know; a name again for each layer that differs."""
    layers = plain.get("layers") or {}
    return chain.from_iterable(_chosen_in(own) for own in (plain, *(overlaid(plain, own) for own in layers.values())))


def _chosen_in(plain: Mapping[str, Any]) -> Iterator[tuple[Family[Any, Any], str]]:
    task = plain.get("task", "")
    has = TASKS.definition(task).attentions if task in TASKS else tuple(Attention)
    attends = plain.get("mixer", "attention") == "attention" or set(has) - set(SELF_ATTENTIONS)
    kernel = plain.get("kernel") if attends else None
    normaliser = plain.get("normaliser")
    if isinstance(kernel, str) and kernel in KERNELS and normaliser is None:
        normaliser = KERNELS.definition(kernel).normaliser
    filters = plain.get("filter") or {}
    chosen: list[tuple[Family[Any, Any], Any]] = [
        (KERNELS, kernel),
        (NORMALISERS, normaliser if attends else None),
        (MIXERS, plain.get("mixer", "attention")),
        *((POSITIONS, scheme) for scheme in plain.get("position") or ()),
        (VALUES, plain.get("value")),
        (ENCODINGS, plain.get("encoding")),
        *((FILTERS, filters.get(attention)) for attention in has),
        (TASKS, task),
    ]
    return ((family, word) for family, word in chosen if isinstance(word, str))


def overlaid(plain: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain values with others laid over them: mappings merge key by key, anything else replaces."""
    merged = dict(plain)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = overlaid(merged[key], value) if both else value
    return merged


def options_in(plain: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options of a resolved cell, by name."""
    words = words_in(plain)
    options = {option.name: option for family, word in words for option in family.definition(word).options}
    if plain.get("space") == Space.GRAPH:
        options.pop("clip", None)  # Each label has a vector, whatever the distance.
    return options


@cached_over_words
def known_options() -> dict[str, Option]:
    """Return the options of all names and tasks."""
    return options_of_words() | {option.name: option for task in TASKS.definitions() for option in task.options}


def owners(option: str) -> list[str]:
    """Return the names and tasks that an option comes with; for `data.…`, the corpora."""
    section, _, name = option.rpartition(".")
    if section:
        return [known.word for known in DIFFICULTIES.definitions() if name in known.option_names]
    definitions = (known for family in (*FAMILIES, TASKS) for known in family.definitions())
    return [known.word for known in definitions if name in known.option_names]

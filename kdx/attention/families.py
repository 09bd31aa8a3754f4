"""The families of components of an attention, and all their options."""

from typing import Any

from kdx.attention.encodings import ENCODINGS
from kdx.attention.filters import FILTERS
from kdx.attention.kernels import KERNELS
from kdx.attention.mixers import MIXERS
from kdx.attention.normalisers import NORMALISERS
from kdx.attention.positions import POSITIONS
from kdx.attention.values import VALUES
from kdx.words.family import Family, cached_over_words
from kdx.words.option import Option

FAMILIES: tuple[Family[Any, Any], ...] = (KERNELS, POSITIONS, VALUES, FILTERS, NORMALISERS, ENCODINGS, MIXERS)


@cached_over_words
def options_of_words() -> dict[str, Option]:
    """Return the options of all names, by name."""
    return {option.name: option for family in FAMILIES for known in family.definitions() for option in known.options}

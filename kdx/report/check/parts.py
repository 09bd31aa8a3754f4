"""What a file tells of a table, as plain values, and one thing that it tells otherwise than the database."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

THERE, NOT_THERE = "there", "not there"


@dataclass(frozen=True)
class Part:
    """A table, or what belongs to one, as plain values: title and header, and place → what → value."""

    title: str
    header: tuple[str, ...]
    places: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    """The paragraphs that follow it, up to the next table."""


@dataclass(frozen=True)
class NumberChange:
    """One thing that the file tells otherwise than the database."""

    table: str
    place: str
    """Row and column, as they are printed."""
    what: str
    """Such as `mean`; empty for all that is shown there."""
    was: str
    """In the file."""
    now: str
    """By the database."""

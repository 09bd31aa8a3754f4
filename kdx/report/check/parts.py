"""The parts of a table in a file as plain values, and a difference from the database."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

THERE, NOT_THERE = "there", "not there"


@dataclass(frozen=True)
class Part:
    """A table or one of its listings as plain values: title, header, and place → what → value."""

    title: str
    header: tuple[str, ...]
    places: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    """The paragraphs from here to the next table."""


@dataclass(frozen=True)
class NumberChange:
    """One value in the file that differs from the database."""

    table: str
    place: str
    """Row and column, as they are printed."""
    what: str
    """The name of the value, such as `mean`; empty for all that is shown in the place."""
    was: str
    """The value in the file."""
    now: str
    """The value by the database."""

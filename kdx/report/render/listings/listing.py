"""The one shape of what goes below a table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Listing:
    """A plain table of words."""

    title: str
    key: tuple[str, ...]
    """What no other listing of a report has: its table and what it is of that, such as `differences`."""
    headers: tuple[str, ...]
    names: int
    """So many columns on the left are names; those after them are numbers, aligned to the right."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

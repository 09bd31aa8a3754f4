"""A listing: the one shape of everything that stands below a table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Listing:
    """A plain table of words below or beside a table of scores."""

    title: str
    key: tuple[str, ...]
    """Identifies the listing in a report: the name of its table and its kind, such as `differences`."""
    headers: tuple[str, ...]
    names: int
    """Number of columns on the left that are names; the others are numbers, aligned to the right."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

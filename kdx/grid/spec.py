"""A cell, fully resolved: everything that decides what a run computes, except its seed.

The fields are the words of a grid file. `CellSpec` fills every default and settles what depends on another field, so
that two spellings of one cell are one cell. `identity` says what is hashed, and how a field may be added later.
"""

from typing import Self

from pydantic import model_validator

from kdx.grid.fields import CellFields
from kdx.grid.rules import resolve
from kdx.vocabulary import Direction


class CellSpec(CellFields):
    """One choice on each axis, with everything else a run needs, except the seed."""

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        resolve(self)
        return self

    @property
    def text(self) -> str:
        """Every field as JSON, in the order of the fields, as a database keeps it and a worker gets it."""
        return self.model_dump_json(by_alias=True)

    @property
    def selection(self) -> tuple[str, Direction]:
        """The resolved validation metric, such as `valid/bleu`, and its direction."""
        assert self.select is not None and self.select.direction is not None
        return self.select.metric, self.select.direction

"""A cell, fully resolved: everything that decides what a run computes, except its seed.

The fields are the words of a grid file. `CellSpec` fills every default and settles what depends on another field, so
that two spellings of one cell are one cell. What is hashed and how fields may be added later stands in `identity`.
"""

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, create_model, model_validator

from kdx.grid.fields import CellFields
from kdx.grid.rules import resolve
from kdx.grid.sections import Neutral, OneOf
from kdx.tasks import TASKS
from kdx.vocabulary import Direction


class _Resolved(CellFields):
    @model_validator(mode="after")
    def _resolve(self) -> Self:
        resolve(self)
        return self

    def option(self, name: str) -> Any:
        """The cell's choice of an option that its task brings along; None where it is another task's."""
        return getattr(self, name)

    @property
    def selection(self) -> tuple[str, Direction]:
        """The resolved validation metric, such as `valid/bleu`, and its direction."""
        assert self.select is not None and self.select.direction is not None
        return self.select.metric, self.select.direction


def _is_none(value: Any) -> bool:
    return value is None


def _options() -> dict[str, Any]:
    """The fields that tasks bring along; None in a cell of another task, and then not told."""
    return {
        option.name: (
            Annotated[Annotated[str, OneOf(option.words)] | None, Neutral(None)],
            Field(None, description=option.description, exclude_if=_is_none),
        )
        for task in TASKS.values()
        for option in task.options
    }


if TYPE_CHECKING:

    class CellSpec(_Resolved):
        """One choice on each axis, with everything else a run needs, except the seed."""

else:
    CellSpec = create_model("CellSpec", __base__=_Resolved, __doc__=CellFields.__doc__, **_options())

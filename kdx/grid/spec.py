"""A cell, fully resolved: everything that decides what a run computes, except its seed.

The fields are the words of a grid file. `CellSpec` fills every default and settles what depends on another field, so
that two spellings of one cell are one cell. `identity` says what is hashed, and how a field may be added later.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Self, get_args

from pydantic import BaseModel, ModelWrapValidatorHandler, model_validator

from kdx.grid.field_types import Later
from kdx.grid.fields import CellFields
from kdx.grid.layers import LayerName, layers_of, resolve_layers
from kdx.grid.rules import resolve
from kdx.grid.words import overlaid
from kdx.vocabulary import Direction


class CellSpec(CellFields):
    """One choice on each axis, with everything else a run needs, except the seed."""

    @model_validator(mode="after")
    def _resolve(self) -> Self:
        resolve(self)
        return self

    # Below `_resolve`, which it is laid around.
    @model_validator(mode="wrap")
    @classmethod
    def _resolve_layers(cls, given: Any, make: ModelWrapValidatorHandler[Self]) -> Self:
        cell = make(given)
        if cell.layers and isinstance(given, Mapping):
            resolve_layers(cell, given, cls.model_validate)
        return cell

    def of_layer(self, layer: LayerName) -> "CellSpec":
        """Return the cell that a layer is built from."""
        changes = self.layers.get(str(layer))
        if changes is None:
            return self
        shared = self.model_dump(mode="json", by_alias=True, exclude={"layers"})
        return CellSpec.model_validate(overlaid(shared, changes))

    @property
    def parts(self) -> tuple["CellSpec", ...]:
        """The cell, and those that its layers are built from, each once."""
        return tuple(dict.fromkeys((self, *(self.of_layer(layer) for layer in layers_of(self)))))

    @property
    def text(self) -> str:
        """Every field as JSON, in the order of the fields, as a database keeps it and a worker gets it."""
        return self.model_dump_json(by_alias=True)

    @property
    def selection(self) -> tuple[str, Direction]:
        """The resolved validation metric, such as `valid/bleu`, and its direction."""
        assert self.select is not None and self.select.direction is not None
        return self.select.metric, self.select.direction


@cache
def later_fields(fields: type[BaseModel]) -> Mapping[str, Any]:
    """Return each field of a model and its sections that was added later, dotted → its neutral value."""
    later: dict[str, Any] = {}
    for key, info in fields.model_fields.items():
        name = info.alias or key
        later.update((name, mark.neutral) for mark in info.metadata if isinstance(mark, Later))
        for section in (info.annotation, *get_args(info.annotation)):
            if isinstance(section, type) and issubclass(section, BaseModel):
                later |= {f"{name}.{inner}": neutral for inner, neutral in later_fields(section).items()}
    return later


def read_plain(text: str, fields: type[BaseModel] = CellFields) -> Any:
    """Return what `CellSpec.text` wrote, with the neutral values of fields that were added since.

    Raises:
        ValueError: it is no JSON.
    """
    plain = json.loads(text)
    for field, neutral in later_fields(fields).items():
        *sections, name = field.split(".")
        place = plain
        for section in sections:
            place = place.get(section) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place.setdefault(name, neutral)
    return plain

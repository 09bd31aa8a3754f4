"""What makes a cell this cell: the hash of its resolved spec.

Every field is hashed, whether the grid wrote it or a default filled it, so a changed default never reuses an old
result in silence. A field that is added later declares the value under which kdx does what it did before the field
existed (`Neutral`); while it holds that value it is left out of the hash, so a new parameter invalidates nothing.
The seed is not part of a cell; a run is (cell, seed, generation). Code, data and environment are recorded beside a
run, not in its identity: they mark a result stale.
"""

import hashlib
import json
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import to_json

from kdx.grid.sections import Neutral, WithOptions
from kdx.grid.spec import CellSpec
from kdx.grid.words import options_in

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def canonical(spec: BaseModel) -> str:
    """The cell as JSON with sorted keys and no blanks; equal cells give equal text."""
    return _encode(set_in(spec))


def resolved(text: str) -> dict[str, Any]:
    """The whole cell of its canonical JSON, with the fields that the hash leaves out.

    Words that another kdx wrote, and that this one does not know, are kept like all others.
    """
    plain = _whole(json.loads(text), CellSpec)
    return plain | {name: one.default for name, one in options_in(plain).items() if one.neutral and name not in plain}


def set_in(spec: BaseModel) -> dict[str, Any]:
    """What a grid has to say for this cell: every field that is not at its neutral value."""
    return _without_neutral(spec, spec.model_dump(mode="json", by_alias=True))


def cell_id(spec: CellSpec) -> str:
    """128 bits of the SHA-256 of the canonical JSON, as 32 hexadecimal digits."""
    return hashlib.sha256(canonical(spec).encode()).hexdigest()[:32]


def _without_neutral(model: BaseModel, plain: dict[str, Any]) -> dict[str, Any]:
    """What a model dumped, less what the hash leaves out of it."""
    for name, key, marks, may_be_section in _marked(type(model)):
        value = getattr(model, name)
        if value in marks:
            plain.pop(key, None)
        elif may_be_section and isinstance(value, BaseModel):
            plain[key] = _without_neutral(value, plain[key])
    for name in model.neutral_options if isinstance(model, WithOptions) else ():
        plain.pop(name, None)
    return plain


@cache
def _marked(model: type[BaseModel]) -> tuple[tuple[str, str, tuple[Any, ...], bool], ...]:
    """Name, key, neutral values and whether it may hold a section, of each field of which that matters."""
    found = []
    for name, info in model.model_fields.items():
        marks = tuple(mark.value for mark in info.metadata if isinstance(mark, Neutral))
        if marks or _section(info.annotation):
            found.append((name, info.serialization_alias or info.alias or name, marks, bool(_section(info.annotation))))
    return tuple(found)


def _whole(plain: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """`plain` with the neutral value of each missing field; known fields come in the order of the model."""
    found = {}
    for key, section, neutral, plain_neutral in _fields(model):
        if key in plain:
            value = plain[key]
            found[key] = _whole(value, section) if section and isinstance(value, dict) else value
        elif neutral:
            # Each cell has a list and a mapping of its own.
            found[key] = json.loads(neutral) if isinstance(plain_neutral, list | dict) else plain_neutral
    return found | {key: value for key, value in plain.items() if key not in found}


@cache
def _fields(model: type[BaseModel]) -> tuple[tuple[str, type[BaseModel] | None, str, Any], ...]:
    """Key, section, and neutral value, as JSON and in plain values, of each field; no section and no JSON where it has
    none."""
    found = []
    for name, info in model.model_fields.items():
        neutral = [mark.value for mark in info.metadata if isinstance(mark, Neutral)]
        text = to_json(neutral[-1], by_alias=True).decode() if neutral else ""
        key = info.serialization_alias or info.alias or name
        found.append((key, _section(info.annotation), text, json.loads(text) if text else None))
    return tuple(found)


def _section(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, if it holds one."""
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)

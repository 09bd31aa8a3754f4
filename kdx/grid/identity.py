"""What makes a cell this cell: the hash of its resolved spec.

Every field is hashed, whether the grid wrote it or a default filled it, so a changed default never reuses an old
result in silence. A field that is added later declares the value under which kdx does what it did before the field
existed (`Neutral`); while it holds that value it is left out of the hash, so a new parameter invalidates nothing.
The seed is not part of a cell; a run is (cell, seed, generation). Code, data and environment are recorded beside a
run, not in its identity: they mark a result stale.
"""

import hashlib
import json
from typing import Any

from pydantic import BaseModel

from kdx.grid.sections import Neutral
from kdx.grid.spec import CellSpec


def canonical(spec: BaseModel) -> str:
    """The cell as JSON with sorted keys and no blanks; equal cells give equal text."""
    return json.dumps(_hashed(spec), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def resolved(text: str) -> dict[str, Any]:
    """The whole cell of its canonical JSON, with the fields that the hash leaves out."""
    return CellSpec.model_validate_json(text).model_dump(mode="json", by_alias=True)


def cell_id(spec: CellSpec) -> str:
    """128 bits of the SHA-256 of the canonical JSON, as 32 hexadecimal digits."""
    return hashlib.sha256(canonical(spec).encode()).hexdigest()[:32]


def _hashed(model: BaseModel) -> dict[str, Any]:
    plain = model.model_dump(mode="json", by_alias=True)
    for name, info in type(model).model_fields.items():
        key = info.serialization_alias or info.alias or name
        value = getattr(model, name)
        if any(isinstance(mark, Neutral) and mark.value == value for mark in info.metadata):
            del plain[key]
        elif isinstance(value, BaseModel):
            plain[key] = _hashed(value)
    return plain

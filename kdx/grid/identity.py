"""What makes a cell this cell: the hash of its resolved spec.

Every field is hashed, whether the grid wrote it or a default filled it, so a changed default never reuses an old
result in silence; a field that was added later (`kdx.grid.field_types.Later`) is not hashed at its neutral value. A
custom component counts by its source and the name of its class, not by the path of its file: a file that was moved or
renamed changes no cell. The seed is not part of a cell; a run is (cell, seed, generation). Code, data and environment
are recorded beside a run, not in its identity: they mark a result stale.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from kdx.grid.fields import CellFields
from kdx.grid.spec import CellSpec, later_fields

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def cell_id(spec: CellSpec) -> str:
    """Return 128 bits of the SHA-256 of the resolved cell, as 32 hexadecimal digits."""
    return id_of(spec.model_dump(mode="json", by_alias=True))


def id_of(plain: Mapping[str, Any], fields: type[BaseModel] = CellFields) -> str:
    """Return the id of a cell from all its fields in plain values.

    Raises:
        ValueError: it holds a number that is not finite, which JSON has no word for.
    """
    plain = hashed(plain, fields)
    if isinstance(components := plain.get("components"), dict) and components:
        return hash_of({key: value for key, value in plain.items() if key != "components"}, components)
    return hash_of(plain, {})


def hash_of(value: Any, components: Mapping[str, str]) -> str:
    """Return 128 bits of the SHA-256 of plain values, as 32 hexadecimal digits.

    Args:
        components: word, such as `my_kernels.py:Cauchy` → hash of its source. Together with the name of its class, it
            stands for the word.

    Raises:
        ValueError: there is a number that is not finite, which JSON has no word for.
    """
    value = _by_content(value, components) if components else value
    return hashlib.sha256(_canonical(value).encode()).hexdigest()[:32]


def hashed(plain: Mapping[str, Any], fields: type[BaseModel] = CellFields) -> Mapping[str, Any]:
    """Return the fields that make a cell: all but those that were added later and have their neutral value."""
    for field, neutral in later_fields(fields).items():
        plain = _without(plain, field.split("."), neutral)
    return plain


def _by_content(value: Any, components: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _by_content(inner, components) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_by_content(inner, components) for inner in value]
    if isinstance(value, str) and value in components:
        return f"{components[value]}:{value.rpartition(':')[2]}"
    return value


def _without(plain: Mapping[str, Any], path: list[str], neutral: Any) -> Mapping[str, Any]:
    """Return the same without the field at `path` if it has its neutral value."""
    key, *rest = path
    if rest and isinstance(plain.get(key), Mapping):
        return {**plain, key: _without(plain[key], rest, neutral)}
    return {name: value for name, value in plain.items() if name != key or rest or value != neutral}

"""JSON objects in columns, and the shape of their values, so that whoever reads one need not check it again."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import JSON, Text, TypeDecorator
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

Shape = Any
"""Types that a value may have, such as `str` or `int | None`; a range of whole numbers; `[shape]` for a list; or `{key:
shape}` for an object, in which each key may be missing and `ANY` stands for all other keys."""

ANY = "*"
LARGEST = 2**63
"""The least whole number that no database keeps."""

TEXTS: Shape = {ANY: str}
NUMBER: Shape = int | float

SEED: Shape = range(LARGEST)
GRID: Shape = {
    "description": str,
    "command": str,
    "file": str,
    "axes": [str],
    "seeds": [SEED],
    "tables": [{"name": str, ANY: object}],
    "evaluations": [{"name": str, "settings": {ANY: object}}],
    ANY: object,
}
ENVIRONMENT: Shape = {"code": TEXTS, "device": str, "gpu": str, ANY: object}
FACTS: Shape = {
    "vocabulary": str,
    "vocabulary_size": NUMBER | None,
    **{f"{split}/unknown_rate": NUMBER | None for split in ("train", "valid", "test")},
    ANY: object,
}
SUMS: Shape = {ANY: [NUMBER]}


class UnexpectedJsonError(Exception):
    """A column holds JSON that kdx never writes."""


class JsonObject(TypeDecorator[Any]):
    """A JSON object. Drivers leave it as text; on SQLite the column is text too, since strict tables know no JSON."""

    impl = JSON
    cache_ok = True

    def __init__(self, name: str = "", shape: Shape = None) -> None:
        """Make the type of the column of this name; each object has any keys and values if there is no shape."""
        super().__init__()
        self.name = name
        self._shape = {ANY: object} if shape is None else shape

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text() if dialect.name == "sqlite" else JSON(none_as_null=True)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return json.dumps(value) if dialect.name == "sqlite" and value is not None else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else self.read(value)

    def read(self, text: str) -> dict[str, Any]:
        """Return the object that a text says.

        Raises:
            UnexpectedJsonError: it says none, or one of another shape.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnexpectedJsonError(f"its `{self.name}` is no JSON: {text[:60]}") from error
        if not _fits(value, self._shape):
            raise UnexpectedJsonError(f"its `{self.name}` is not as kdx writes it: {text[:60]}")
        return dict(value)


def _fits(value: Any, shape: Shape) -> bool:
    match shape:
        case range():
            return isinstance(value, int) and value in shape
        case [kind] if kind is NUMBER:
            # Sums of a million documents are checked at once.
            numbers = isinstance(value, list) and set(map(type, value)) <= {int, float}
            return numbers and max(map(abs, value), default=0) < LARGEST
        case [item]:
            return isinstance(value, list) and all(_fits(each, item) for each in value)
        case {**keys}:
            return isinstance(value, Mapping) and all(
                _fits(each, keys.get(key, keys.get(ANY, object))) for key, each in value.items()
            )
        case _ if isinstance(value, int):
            return isinstance(value, shape) and abs(value) < LARGEST
        case _ if shape is not object:
            return isinstance(value, shape)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(_fits(each, object) for each in inner)

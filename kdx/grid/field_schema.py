"""JSON Schema (2020-12) of what stands under one key of a cell, from its field or from the options of words.

The values are those of a grid as YAML has them, before a cell settles them. JSON Schema takes 2.0 for a whole number,
and a cell does not; nothing else is allowed here that a single value is refused for.
"""

import types
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kdx.grid.descriptions import descriptions
from kdx.grid.fields import one_or_many
from kdx.grid.sections import OneOf, margin
from kdx.grid.word_facts import Facts, facts_of
from kdx.words.family import Family
from kdx.words.option import Option

Schema = dict[str, Any]

_FILE = r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/)*[A-Za-z0-9_][A-Za-z0-9_.-]{0,96}\.py:[A-Za-z_][A-Za-z0-9_]*$"
IN_A_FILE: Schema = {"type": "string", "pattern": _FILE, "title": "FILE.py:Class"}
"""A word from a file, `FILE.py:Class`; `kdx.components.read` says the same."""
_SHARE = r"^(?=.*[1-9])[0-9]+(\.[0-9]+)?%$"
_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}
_LIMITS = {Ge: ("ge", "minimum"), Gt: ("gt", "exclusiveMinimum"), Le: ("le", "maximum"), Lt: ("lt", "exclusiveMaximum")}


def fields_schema(model: type[BaseModel]) -> dict[str, Schema]:
    """Key → schema, for each field of a section."""
    return {info.alias or name: field_schema(model, name) for name, info in model.model_fields.items()}


def field_schema(model: type[BaseModel], name: str) -> Schema:
    """The schema of one field, with its description and its default."""
    info = model.model_fields[name]
    schema: Schema = {"description": descriptions(model).get(name, "")} | _of(info.annotation, info.metadata)
    if info.examples:
        schema["examples"] = info.examples
    if not info.is_required():
        default = info.get_default(call_default_factory=True)
        schema["default"] = list(default) if isinstance(default, tuple) else default
    return schema


def option_schema(name: str, declared: Sequence[Option]) -> Schema:
    """The schema of an option of words; of all that declare one under this name, where they differ."""
    different = list(dict.fromkeys((one.title, one.allowed) for one in declared))
    schemas = {(one.title, one.allowed): _of_option(one) for one in declared}
    text = " ".join(dict.fromkeys(title for title, _ in different))
    alternatives = [inner for schema in schemas.values() for inner in schema["anyOf"]]
    schema = {"anyOf": [one for index, one in enumerate(alternatives) if one not in alternatives[:index]]}
    defaults = {one.default for one in declared}
    return {"description": text or name} | schema | ({"default": defaults.pop()} if len(defaults) == 1 else {})


def word_schema(facts: Facts) -> Schema:
    """The alternative that is this word, with what is known of it."""
    text = "\n\n".join(filter(None, (facts.title, facts.formula, facts.source)))
    return {"const": facts.word} | ({"title": facts.title, "description": text} if text else {})


def _of_option(option: Option) -> Schema:
    schemas: list[Schema]
    if option.words:
        schemas = [{"const": word} for word in option.words]
    else:
        whole = isinstance(option.default, int)
        limits = {
            "minimum": option.minimum,
            "maximum": option.maximum,
            "exclusiveMinimum": option.above,
            # Beyond it a float is no longer every whole number, and no option goes there.
            "exclusiveMaximum": 2**53 if option.below is None else option.below,
        }
        limited = {key: limit for key, limit in limits.items() if limit is not None}
        schemas = [{"type": "integer" if whole else "number", **limited}]
    if option.none and "none" not in option.words:
        schemas.append({"const": "none"})
    # A cell reads an option without a value as one that is not written.
    return {"anyOf": [*schemas, {"type": "null"}]}


def _of(annotation: Any, metadata: Iterable[Any] = ()) -> Schema:
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        metadata = (*inner, *metadata)
    known = [each for one in metadata for each in (one.metadata if isinstance(one, FieldInfo) else (one,))]
    checks = [getattr(one, "func", None) for one in known]
    if margin in checks:
        return {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": _SHARE}]}
    for one in known:
        if isinstance(one, OneOf):
            own = [IN_A_FILE] if isinstance(one.family, Family) else []
            return {"anyOf": [*(word_schema(facts_of(one.family, word)) for word in one.words), *own]}
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return {"anyOf": [word_schema(facts_of((), word)) for word in annotation]}
    origin, inner = get_origin(annotation), list(get_args(annotation))
    if origin in (Union, types.UnionType):
        (kind,) = (one for one in inner if one is not types.NoneType)
        return _or_null(_of(kind, known))
    if origin is tuple and inner[-1] is Ellipsis:
        items = _of(inner[0])
        if one_or_many not in checks:
            return {"type": "array", "items": items} | _limits(known, MinLen="minItems", MaxLen="maxItems")
        words = [one for one in items["anyOf"] if one.get("const") != "none"]
        words.append({"const": "none", "title": "None at all", "description": "None at all"})
        return {"anyOf": [*words, {"type": "array", "items": {"anyOf": words}}]}
    if origin is tuple:
        return {
            "type": "array",
            "prefixItems": [_of(one) for one in inner],
            "minItems": len(inner),
            "maxItems": len(inner),
        }
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(inner[1])}
    schema = {"type": _TYPES[annotation]} | _limits(known, MinLen="minLength", MaxLen="maxLength")
    patterns = [one.pattern for one in known if getattr(one, "pattern", None)]
    return schema | ({"pattern": patterns[0]} if patterns else {})


def _limits(metadata: Iterable[Any], **lengths: str) -> Schema:
    """What bounds a number, and under these names the length of a text or a list."""
    found: Schema = {}
    for one in metadata:
        if type(one) in _LIMITS:
            attribute, key = _LIMITS[type(one)]
            found[key] = getattr(one, attribute)
        elif isinstance(one, MinLen):
            found[lengths["MinLen"]] = one.min_length
        elif isinstance(one, MaxLen):
            found[lengths["MaxLen"]] = one.max_length
    return found


def _or_null(schema: Schema) -> Schema:
    if "type" in schema:
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [*schema["anyOf"], {"type": "null"}]}

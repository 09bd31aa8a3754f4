"""The JSON Schema (2020-12) of a grid file, by which an editor completes and checks it: that of `kdx.grid.model`.

It says what a file alone shows: its keys, and the values that each may have. `kdx plan` judges the rest. A grid that
extends another may write a part of any mapping, and null for what it removes, so no key is required.
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from kdx.grid import model
from kdx.grid.cell_selector import factors, settings
from kdx.grid.extends import ENTRIES, presets
from kdx.grid.field_types import IN_A_FILE, Schema, descriptions, word_schema
from kdx.grid.fields import CellFields
from kdx.grid.sections import STORED_NAME, Select
from kdx.grid.words import known_options
from kdx.tasks.corpora import BUILT_IN, DIFFICULTIES, options_of_corpora
from kdx.words.family import cached_over_words
from kdx.words.option import Option

SECTIONS = ("data", "model", "training", "filter", "evaluation", "select")
"""The keys of a cell that hold further keys."""
_NULL: Schema = {"type": "null"}


@cached_over_words
def grid_schema() -> Schema:
    """Return the schema of a whole grid file, as JSON has it."""
    models: list[Any] = [(kind, "validation") for kind in (model.GridFile, model.SubGrid, CellFields)]
    definitions: Schema = models_json_schema(models, schema_generator=_Generator)[1]["$defs"]
    definitions["Cell"] = definitions.pop("CellFields")
    definitions["Cell"]["properties"] |= {name: option_schema([option]) for name, option in known_options().items()}
    definitions["Data"]["properties"] |= {name: option_schema(same) for name, same in options_of_corpora().items()}
    for name in ("GridFile", "SubGrid", "Choice"):
        properties = definitions[name]["properties"]
        for key, schema in properties.items():
            schema.pop("default", None)
            if key in ENTRIES:
                properties[key] = {"description": schema.pop("description"), "anyOf": [schema, _NULL]}
        properties |= _references(settings())
    definitions |= _shared_definitions(definitions)
    grid = definitions.pop("GridFile")
    grid["properties"] |= {key: {"$ref": f"#/$defs/SubGrid/properties/{key}"} for key in model.SUB_GRID}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A grid of kdx",
        **grid,
        "$defs": definitions,
    }


def keys() -> tuple[str, ...]:
    """Return the factors, and the keys that are no axis by themselves."""
    return (*factors(), "layers", *(f"select.{name}" for name in Select.model_fields))


def schema_of(key: str) -> Schema:
    """Return the schema of the value of one of `keys`, or of a section.

    Raises:
        KeyError: there is no such key.
    """
    return _at(_reference(key), grid_schema()["$defs"])


def alternatives(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas of which a value must fit one, with references followed."""
    if "$ref" in schema:
        yield from alternatives(_at(schema, grid_schema()["$defs"]))
    elif "anyOf" in schema:
        for inner in schema["anyOf"]:
            yield from alternatives(inner)
    else:
        yield schema


def option_schema(declared: Sequence[Option]) -> Schema:
    """Return the schema of an option; corpora may declare one name differently, and each may be meant."""
    schemas = [schema for option in declared for schema in option.json_schemas]
    # A cell reads an option without a value as one that is not written.
    allowed = [*(schema for i, schema in enumerate(schemas) if schema not in schemas[:i]), _NULL]
    titles = dict.fromkeys(option.title for option in declared)
    defaults = {option.default for option in declared}
    default = {"default": defaults.pop()} if len(defaults) == 1 else {}
    return {"description": " ".join(titles) or declared[0].name, "anyOf": allowed, **default}


class _Generator(GenerateJsonSchema):
    """Makes pydantic's schema, with the texts that stand below attributes in the source."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def handle_ref_overrides(self, json_schema: Schema) -> Schema:
        # Pydantic would look references up, also those to definitions that `grid_schema` adds later.
        return json_schema

    def enum_schema(self, schema: Any) -> Schema:
        return {"anyOf": [word_schema((), member) for member in schema["members"]]}

    def tagged_union_schema(self, schema: Any) -> Schema:
        return {"anyOf": [self.generate_inner(choice) for choice in schema["choices"].values()]}

    def dict_schema(self, schema: Any) -> Schema:
        # It may be laid over another mapping: any entry may be missing, and null removes one.
        mapping = super().dict_schema(schema)
        mapping.pop("minProperties", None)
        if mapping["additionalProperties"] is not True:
            mapping["additionalProperties"] = {"anyOf": [mapping["additionalProperties"], _NULL]}
        return mapping

    def model_schema(self, schema: Any) -> Schema:
        properties = super().model_schema(schema).get("properties", {})
        texts = descriptions(schema["cls"])
        for name, info in schema["cls"].model_fields.items():
            key = info.alias or name
            properties[key] = {"description": texts[name], **properties[key]}
        return _object(properties)


def _shared_definitions(definitions: Schema) -> Schema:
    """Return the definitions that types of `kdx.grid.model` and `kdx.grid.sections` refer to by name.

    Args:
        definitions: those of the sections of a cell.
    """
    word: Schema = {"type": ["string", "number", "boolean", "null"]}
    words: Schema = {"$ref": "#/$defs/Words"}
    values, terms = {}, {}
    for factor, reference in _references(factors()).items():
        several = {"type": "array", "items": reference, "minItems": 1}
        text = _at(reference, definitions)["description"]
        values[factor] = {"description": text, "anyOf": [several, {"$ref": "#/$defs/Range"}, _NULL]}
        terms[factor] = {"anyOf": [reference, words]}
    choices = {"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Choice"}, _NULL]}}
    stored = {"title": "the name of a stored text", "type": "string", "maxLength": 64, "pattern": STORED_NAME}
    return {
        "Axes": {
            "type": "object",
            "properties": {factor: {"$ref": f"#/$defs/Values/properties/{factor}"} for factor in factors()},
            "additionalProperties": {"anyOf": [choices, _NULL]},
            "propertyNames": {"not": {"enum": model.reserved_names()}},
        },
        "Values": _object(values),
        "Settings": _object(_references((*settings(), *factors()))),
        "Condition": {
            "type": "object",
            "properties": {**terms, "not": {"$ref": "#/$defs/Condition"}},
            "additionalProperties": words,
        },
        "Words": {"anyOf": [word, {"type": "array", "items": word, "minItems": 1}]},
        "Preset": {"enum": [*presets()]},
        "Corpus": {"anyOf": [*map(_corpus_schema, {**BUILT_IN.addresses, **DIFFICULTIES.outside}), stored, IN_A_FILE]},
    }


def _corpus_schema(corpus: str) -> Schema:
    """Return the schema of a corpus; one that kdx has no definition of has the first line of its module as title."""
    if corpus in DIFFICULTIES:
        return word_schema(DIFFICULTIES, corpus)
    spec = find_spec(BUILT_IN.addresses[corpus].partition(":")[0])
    assert spec is not None and spec.origin is not None
    with Path(spec.origin).open(encoding="utf-8") as file:
        return {"const": corpus, "title": file.readline().strip().strip('"').removesuffix(".")}


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _references(keys: Iterable[str]) -> dict[str, Schema]:
    return {key: _reference(key) for key in keys}


def _reference(key: str) -> Schema:
    """Return a reference to the schema of a key of a cell, `training.steps`."""
    section, _, name = key.rpartition(".")
    return {"$ref": f"#/$defs/{section.capitalize() or 'Cell'}/properties/{name}"}


def _at(reference: Schema, definitions: Schema) -> Schema:
    """Return what a reference refers to."""
    schema = definitions
    for step in reference["$ref"].split("/")[2:]:
        schema = schema[step]
    return schema

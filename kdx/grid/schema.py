"""The JSON Schema (2020-12) of a grid file, by which an editor completes and checks it: that of `kdx.grid.model`.

It says what a file alone shows: its keys, and the words, kinds and limits of their values. `kdx plan` judges the rest.
For mappings are laid over those that lie under them, so a grid that extends another may write half a range, and no key
of a cell is required. Conditions and included combinations name axes of the grid's own beside factors, so a mistyped
factor is not found there.
"""

from collections.abc import Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from kdx.grid import model
from kdx.grid.cell_selector import factors
from kdx.grid.descriptions import descriptions
from kdx.grid.evaluations import EvaluationChoices, EvaluationSettings, one_or_several, one_or_several_pairs
from kdx.grid.extends import presets
from kdx.grid.fields import CellFields, one_or_many
from kdx.grid.plan import TableSpec
from kdx.grid.sections import Data, OneOf, Select, as_list, corpus_name
from kdx.grid.settings import ENTRIES, In, settings
from kdx.grid.tuning import MOST_PARAMETERS, parameters
from kdx.grid.word_facts import Facts, facts_of, facts_of_corpus
from kdx.grid.words import known_options
from kdx.tasks.corpora import BUILT_IN, DIFFICULTIES, options_of_corpora
from kdx.words.family import Family, cached_over_words
from kdx.words.option import Option

Schema = dict[str, Any]

_FILE = r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/)*[A-Za-z0-9_][A-Za-z0-9_.-]{0,96}\.py:[A-Za-z_][A-Za-z0-9_]*$"
IN_A_FILE: Schema = {"type": "string", "pattern": _FILE, "title": "FILE.py:Class"}
"""A word from a file, `FILE.py:Class`; `kdx.components.find` says the same."""
SECTIONS = ("data", "model", "training", "filter", "evaluation", "select")
"""The keys of a cell that hold further keys."""
_NULL: Schema = {"type": "null"}
_WORD: Schema = {"type": ["string", "number", "boolean", "null"]}


@cached_over_words
def grid_schema() -> Schema:
    """The schema of a whole grid file, as JSON has it."""
    models: list[Any] = [(model.GridFile, "validation"), (CellFields, "validation")]
    _, made = models_json_schema(models, schema_generator=_Generator)
    definitions: Schema = made["$defs"]
    definitions["Cell"] = definitions.pop("CellFields")
    words = _any_of(_WORD)
    by_factor = {key: _ref_of(key) for key in (*settings(), *factors())}
    definitions |= {
        "Values": _object({factor: _values(factor, definitions) for factor in factors()}),
        "Settings": _object(by_factor),
        "Parameters": _object({key: {"$later": "Drawn"} for key in parameters()}, maxProperties=MOST_PARAMETERS),
        "Condition": _object(
            {factor: _term(factor, definitions) for factor in factors()} | {"not": {"$later": "Condition"}},
            additionalProperties=words,
        ),
        "Words": words,
        "Drawn": {"anyOf": [{"type": "array", "minItems": 2, "uniqueItems": True}, {"$later": "DrawnRange"}, _NULL]},
    }
    grid = _finished(definitions.pop("GridFile"), definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A grid of kdx",
        **grid,
        "allOf": [
            {"not": {"required": ["tasks", "grids"]}},
            {"not": {"required": ["task", "tasks"]}},
            {"if": {"required": ["extends"]}, "else": {"properties": _without_a_base()}},
        ],
        "$defs": {name: _finished(inner, definitions) for name, inner in definitions.items()},
    }


def keys() -> tuple[str, ...]:
    """The factors, and the keys of `select`, which no axis varies."""
    return (*factors(), *(f"select.{name}" for name in Select.model_fields))


def schema_of(key: str) -> Schema:
    """The schema of the value of one of `keys`, of a section or of a key of a grid.

    Raises:
        KeyError: there is no such key.
    """
    schema = grid_schema()
    for step in _path(key).split("/"):
        schema = schema[step]
    return schema


def word_schema(facts: Facts) -> Schema:
    """The alternative that is this word, with what is known of it."""
    text = "\n\n".join(filter(None, (facts.formula, facts.source)))
    more = {"title": facts.title, "description": text}
    return {"const": facts.word} | {key: value for key, value in more.items() if value}


def option_schema(declared: Sequence[Option]) -> Schema:
    """The schema of an option of words; of all that declare one under its name, where they differ."""
    schemas = {(option.title, option.allowed): _of_option(option) for option in declared}
    alternatives = [inner for schema in schemas.values() for inner in schema]
    # A cell reads an option without a value as one that is not written.
    schema: Schema = {"anyOf": [*(one for i, one in enumerate(alternatives) if one not in alternatives[:i]), _NULL]}
    defaults = {option.default for option in declared}
    text = " ".join(dict.fromkeys(title for title, _ in schemas))
    return {"description": text or declared[0].name, **schema} | (
        {"default": defaults.pop()} if len(defaults) == 1 else {}
    )


def _of_option(option: Option) -> list[Schema]:
    schemas: list[Schema] = [{"const": word} for word in option.words]
    if not option.words:
        limits = {
            "minimum": option.minimum,
            "maximum": option.maximum,
            "exclusiveMinimum": option.above,
            # Beyond it a float is no longer every whole number, and no option goes there.
            "exclusiveMaximum": 2**53 if option.below is None else option.below,
        }
        kind = "integer" if isinstance(option.default, int) else "number"
        schemas.append({"type": kind} | {key: limit for key, limit in limits.items() if limit is not None})
    if option.none and "none" not in option.words:
        schemas.append({"const": "none"})
    return schemas


class _Generator(GenerateJsonSchema):
    """Pydantic's schema, with what kdx knows of words, and the values that validators of kdx take.

    A reference to a definition that is made later is written as `{"$later": name}`, and the description of a factor as
    `{"$about": factor}`.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._enums: dict[str, Any] = {}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def definitions_schema(self, schema: Any) -> Schema:
        self._enums |= {one["ref"]: one for one in schema["definitions"] if one["type"] == "enum"}
        return super().definitions_schema(schema)

    def generate_inner(self, schema: Any) -> Schema:
        # The words of a key stand under it, so that an editor shows what each is.
        schema = self._enums.get(schema.get("schema_ref"), schema)
        return self.enum_schema(schema) if schema["type"] == "enum" else super().generate_inner(schema)

    def enum_schema(self, schema: Any) -> Schema:
        return {"anyOf": [word_schema(facts_of((), word)) for word in schema["members"]]}

    def default_schema(self, schema: Any) -> Schema:
        made = super().default_schema(schema)
        return made if schema.get("default") not in ([], {}) else {key: made[key] for key in made if key != "default"}

    def tagged_union_schema(self, schema: Any) -> Schema:
        return {"anyOf": [self.generate_inner(choice) for choice in schema["choices"].values()]}

    def model_schema(self, schema: Any) -> Schema:
        made, kind = super().model_schema(schema), schema["cls"]
        of_grid = issubclass(kind, model.WithSettings)
        texts = descriptions(EvaluationSettings if kind is EvaluationChoices else kind)
        for name, info in kind.model_fields.items():
            key = info.alias or name
            inner = {"enum": [*presets()]} if name == "preset" else made["properties"][key]
            if of_grid:
                inner.pop("default", None)
                inner = {"anyOf": [inner, _NULL]} if name in ENTRIES else inner
            if kind is TableSpec and name == "baseline":
                inner = {"anyOf": [inner, _WORD]}
            made["properties"][key] = {"description": texts.get(name, ""), **inner}
        if kind is CellFields:
            made["properties"] |= {name: option_schema([option]) for name, option in known_options().items()}
        if kind is Data:
            made["properties"] |= {name: option_schema(declared) for name, declared in options_of_corpora().items()}
        if kind is model.GridFile:
            made["properties"] |= {key: {"$later": f"SubGrid/properties/{key}"} for key in model.SUB_GRID}
        if of_grid:
            made["properties"] |= {key: _ref_of(key) for key in settings()}
        # The class is described for who reads the code.
        kept = {key: inner for key, inner in made.items() if key not in ("title", "description")}
        return kept | {"additionalProperties": False}

    def dict_schema(self, schema: Any) -> Schema:
        made = super().dict_schema(schema)
        for limit in ("propertyNames", "minProperties"):  # of what is laid over more of it
            made.pop(limit, None)
        entry = made.get("additionalProperties", True)
        if entry is not True:
            entry = made["additionalProperties"] = {"anyOf": [entry, _NULL]}
        match _validator(schema.get("keys_schema", {})):
            case model.axis_name:
                made["properties"] = {
                    name: {"$about": name, "$later": f"Values/properties/{name}"} for name in factors()
                }
                made["additionalProperties"] = {"anyOf": [*entry["anyOf"][0]["anyOf"][1:], _NULL]}
                made["propertyNames"] = {"not": {"enum": [*model.reserved_names()]}}
            case In(what="axis"):
                return {"$later": "Values"}
            case In(what="parameter"):
                return {"$later": "Parameters"}
            case In(what="task", known=known):
                made["propertyNames"] = {"anyOf": [{"enum": [*known()]}, IN_A_FILE]}
        return made

    def function_before_schema(self, schema: Any) -> Schema:
        return self._of_validator(schema) or super().function_before_schema(schema)

    def function_wrap_schema(self, schema: Any) -> Schema:
        return self._of_validator(schema) or super().function_wrap_schema(schema)

    def _of_validator(self, schema: Any) -> Schema | None:
        """What a validator of kdx takes, where that is not what its type says."""
        validator = _validator(schema)
        if isinstance(validator, OneOf):
            own = [IN_A_FILE] if isinstance(validator.family, Family) else []
            return {"anyOf": [*(word_schema(facts_of(validator.family, word)) for word in validator.words), *own]}
        if validator in (as_list, one_or_several, one_or_several_pairs):
            several = self.generate_inner(schema["schema"])
            return {"anyOf": [several["items"], several]}
        if validator is one_or_many:
            several = self.generate_inner(schema["schema"])
            words = [word for word in several["items"]["anyOf"] if word.get("const") != "none"]
            words.append({"const": "none", "title": "None at all", "description": "None at all"})
            return {"anyOf": [*words, several | {"items": {"anyOf": words}}]}
        if validator is corpus_name:
            stored = {"title": "the name of a stored text"} | self.generate_inner(schema["schema"])
            known = (word_schema(facts_of_corpus(word)) for word in {**BUILT_IN.addresses, **DIFFICULTIES.outside})
            return {"anyOf": [*known, stored, IN_A_FILE]}
        return None


def _validator(schema: Any) -> Any:
    """The validator of a core schema: a function, or the object that it is a method of."""
    function = schema.get("function", {}).get("function")
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, OneOf | In) else function


def _object(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _any_of(word: Schema) -> Schema:
    return {"anyOf": [word, {"type": "array", "items": word, "minItems": 1}]}


def _path(key: str) -> str:
    """Where the schema of a key of a cell stands."""
    section, _, name = key.rpartition(".")
    owner = section.capitalize() + ("s" if section == "filter" else "") if section else "Cell"
    return f"$defs/{owner}/properties/{name}"


def _ref_of(key: str) -> Schema:
    return {"$later": _path(key).removeprefix("$defs/")}


def _values(factor: str, definitions: Schema) -> Schema:
    """A list of values, or a range where the factor takes numbers; null takes either out of what lies under it."""
    several = {"type": "array", "items": _ref_of(factor), "minItems": 1}
    numeric = not _kinds(_at(factor, definitions)).isdisjoint(("integer", "number"))
    return {"anyOf": [several, *([{"$later": "Range"}] if numeric else []), _NULL]}


def _term(factor: str, definitions: Schema) -> Schema:
    """A word of a factor in a condition; schemes and attentions that stand together may be joined."""
    schema = _at(factor, definitions)
    kinds = _kinds(schema)
    if not any("const" in one for one in schema.get("anyOf", ())) or kinds & {"integer", "number"}:
        return {"$later": "Words"}
    joined = [{"type": "string", "pattern": "[+/]"}] if "array" in kinds else []
    return _any_of({"anyOf": [_ref_of(factor), *joined, {"enum": ["none", None]}]})


def _at(factor: str, definitions: Schema) -> Schema:
    schema = definitions
    for step in _path(factor).split("/")[1:]:
        schema = schema[step]
    return schema


def _kinds(schema: Schema) -> set[str]:
    """The types of a single value."""
    kinds = {schema["type"]} if "type" in schema else set()
    return kinds.union(*(_kinds(one) for one in schema.get("anyOf", ())))


def _without_a_base() -> Schema:
    """What a grid that extends nothing must have: null takes an entry out of what lies under it, and nothing does."""
    entries = {"type": "object", "additionalProperties": {"not": _NULL}}
    some = {**entries, "minProperties": 1}
    return {"axes": entries, "approaches": entries, "evaluations": entries, "tasks": some, "grids": some}


def _finished(schema: Any, definitions: Schema) -> Any:
    """The schema with its references; the keys that an object must have are asked for in a list alone.

    An object that does not stand in a list may be laid over one that lies under it and has them.
    """
    if isinstance(schema, list):
        return [_finished(inner, definitions) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {"$about", "$later", *(("required",) if "additionalProperties" in schema else ())}
    made = {key: _finished(inner, definitions) for key, inner in schema.items() if key not in left_out}
    if "$later" in schema:
        made["$ref"] = f"#/$defs/{schema['$later']}"
    if "$about" in schema:
        made["description"] = _at(schema["$about"], definitions)["description"]
    item: Schema = schema.get("items") or {}
    item = definitions.get(item.get("$later", item.get("$ref", "").removeprefix("#/$defs/")), item)
    if item.get("type") == "object":
        made["items"] |= {"minProperties": 1, "required": item.get("required", [])}
    return made

"""The JSON Schema (2020-12) of a grid file, by which an editor completes and checks it.

It says what a file alone shows: its keys, and the words, kinds and limits of their values. `kdx plan` judges the rest.
For mappings are laid over those that lie under them, so a grid that extends another may write half a range, and no key
of a cell is required. Conditions and included combinations name axes of the grid's own beside factors, so a mistyped
factor is not found there.
"""

from itertools import combinations
from typing import Any

from kdx.grid.cell_selector import factors
from kdx.grid.conditions import MOST_CONDITIONS
from kdx.grid.descriptions import descriptions
from kdx.grid.dimensions import ABLATION, BASELINE, MOST_AXES
from kdx.grid.evaluations import EvaluationSettings
from kdx.grid.extends import presets
from kdx.grid.factor_schema import SECTIONS, factor_schema, keys
from kdx.grid.field_schema import IN_A_FILE, Schema, field_schema, fields_schema
from kdx.grid.fields import CellFields
from kdx.grid.grid_keys import GRID, SUB_GRID
from kdx.grid.plan import TableSpec
from kdx.grid.ranges import MOST_NUMBERS
from kdx.grid.read_tables import MOST_TABLES
from kdx.grid.read_tune import KEYS, MOST_PARAMETERS, MOST_TRIALS, UNTUNED
from kdx.grid.seed_rule import DECIDED, SeedRule
from kdx.grid.settings import settings
from kdx.grid.sweep_name import LONGEST_NAME, PATTERN
from kdx.grid.tuning import ROUND, Pruner, Sampler
from kdx.seed_sources import MOST_APART, WORD, Source
from kdx.tasks import TASKS
from kdx.words.family import cached_over_words

_NULL: Schema = {"type": "null"}
_WORD: Schema = {"type": ["string", "number", "boolean", "null"]}


@cached_over_words
def grid_schema() -> Schema:
    """The schema of a whole grid file, as JSON has it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A grid of kdx",
        "type": "object",
        "properties": {key: _ref(key) for key in GRID} | _settings(),
        "additionalProperties": False,
        "allOf": [
            {"not": {"required": ["tasks", "grids"]}},
            {"not": {"required": ["task", "tasks"]}},
            {"if": {"required": ["extends"]}, "else": {"properties": _without_a_base()}},
        ],
        "$defs": {
            **{key: factor_schema(key) for key in keys()},
            **{key: _section(key) for key in SECTIONS},
            **{f"values of {factor}": _about(factor, _values(factor)) for factor in factors()},
            **{f"axis {factor}": _about(factor, _axis(factor)) for factor in factors()},
            **{f"condition on {factor}": _about(factor, _any_of(_term(factor))) for factor in factors()},
            **{key: {"description": text} | _OF_GRID[key]() for key, text in GRID.items()},
            "choice": _choice(),
            "sub-grid": _object({**_settings(), **{key: _ref(key) for key in SUB_GRID}}),
            "condition": _condition(),
            "range of whole numbers": _range("integer"),
            "range of numbers": _range("number"),
        },
    }


def _without_a_base() -> Schema:
    """What a grid that extends nothing must have: null takes an entry out of what lies under it, and nothing does."""
    entries = _entries({"not": _NULL})
    some = {**entries, "minProperties": 1}
    return {"axes": entries, "approaches": entries, "evaluations": entries, "tasks": some, "grids": some}


def _or_null(schema: Schema) -> Schema:
    """Null takes the whole out of what lies under a grid that extends another."""
    return {"anyOf": [schema, _NULL]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _object(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _about(factor: str, schema: Schema) -> Schema:
    return {"description": factor_schema(factor)["description"], **schema}


def _entries(of: Schema, **more: Any) -> Schema:
    """A mapping whose keys are the author's."""
    return {"type": "object", "additionalProperties": of, **more}


def _settings() -> Schema:
    """Key → schema of what a cell can have at its top."""
    known = (*SECTIONS, *keys())
    return {key: _ref(key) if key in known else field_schema(CellFields, key) for key in settings()}


def _section(key: str) -> Schema:
    inner = {name.removeprefix(f"{key}."): _ref(name) for name in keys() if name.startswith(f"{key}.")}
    kind = "object" if CellFields.model_fields[key].annotation is SECTIONS[key] else ["object", "null"]
    return _object(inner, description=descriptions(CellFields)[key]) | {"type": kind}


def _range(kind: str) -> Schema:
    """`{from: 1e-4, to: 1e-2, log: 5}`, or with `linear` or `step` in place of `log`."""
    count = {"type": "integer", "minimum": 2, "maximum": MOST_NUMBERS}
    spacings = {
        "linear": count | {"description": "How many numbers, equally far apart."},
        "log": count | {"description": "How many numbers, each as many times the one before."},
        "step": {"type": kind, "exclusiveMinimum": 0, "description": "How far apart two numbers are."},
    }
    ends = {
        "from": {"type": kind, "description": "The first number."},
        "to": {"type": kind, "description": "The last number, or the largest that none of the steps goes beyond."},
    }
    two = [{"required": [*both]} for both in combinations(spacings, 2)]
    return _object(ends | spacings, description="Numbers by their ends.", minProperties=1) | {"not": {"anyOf": two}}


def _values(factor: str) -> Schema:
    """A list of values, or a range where the factor takes numbers."""
    many: Schema = {"type": "array", "items": _ref(factor), "minItems": 1}
    kinds = _kinds(factor_schema(factor))
    number = "number" if "number" in kinds else "whole number" if "integer" in kinds else None
    return {"anyOf": [many, _ref(f"range of {number}s")]} if number else many


def _kinds(schema: Schema) -> set[str]:
    """The types of a single value."""
    kinds = schema.get("type", [])
    own = {kinds} if isinstance(kinds, str) else set(kinds)
    return own.union(*(_kinds(one) for one in schema.get("anyOf", ())))


def _inner_axes() -> Schema:
    # An entry is null where it takes one out of the choice that lies under it.
    return _object({name: _about(name, {"anyOf": [_ref(f"values of {name}"), _NULL]}) for name in factors()})


def _choice() -> Schema:
    inner = {
        **_settings(),
        "preset": _ref("preset"),
        "axes": {"description": "What varies within this choice."} | _inner_axes(),
    }
    return {"anyOf": [_object(inner), _NULL]}


def _axis(factor: str) -> Schema:
    values = _ref(f"values of {factor}")
    varies_when = {"description": "Where the axis varies; elsewhere the factor is what it is without it."}
    conditional = {"values": values, "when": varies_when | _ref("condition")}
    return {"anyOf": [values, _object(conditional, minProperties=1), _NULL]}


def _axes() -> Schema:
    reserved = [*GRID, *(key for key in settings() if key not in factors()), "approach", "grid", ABLATION]
    return _object(
        {name: _ref(f"axis {name}") for name in factors()},
        additionalProperties={"anyOf": [_entries(_ref("choice")), _NULL]},
        propertyNames={"not": {"enum": reserved}},
    )


def _list_of(item: Schema, most: int, **whole: Any) -> Schema:
    """A list; a single one may stand alone, where it is laid over one that lies under it, and null is none."""
    items = {**item, "minProperties": 1, **whole}
    return {"anyOf": [item, {"type": "array", "items": items, "minItems": 1, "maxItems": most}, _NULL]}


def _zip() -> Schema:
    return _list_of(_object({name: _ref(f"values of {name}") for name in factors()}), MOST_AXES)


def _approaches() -> Schema:
    return _entries(_ref("choice"))


def _ablate() -> Schema:
    changes = {"type": "array", "minItems": 1, "maxItems": MOST_AXES}
    by_factor = _object({name: _ref(name) for name in factors()}, minProperties=1)
    named = _entries(_ref("choice"), propertyNames={"not": {"const": BASELINE}})
    return {"anyOf": [named, changes | {"items": by_factor}, _NULL]}


def _condition() -> Schema:
    terms = {name: _ref(f"condition on {name}") for name in factors()}
    negated = _ref("condition") | {"description": "What must not hold."}
    return _object({**terms, "not": negated}, additionalProperties=_any_of(_WORD))


def _term(factor: str) -> Schema:
    """A word of a factor in a condition; schemes and attentions that stand together may be joined."""
    schema = factor_schema(factor)
    if not any("const" in one for one in schema.get("anyOf", ())) or _kinds(schema) & {"integer", "number"}:
        return {"type": [*_WORD["type"], "array"]}
    joined = [{"type": "string", "pattern": "[+/]"}] if "array" in _kinds(schema) else []
    return {"anyOf": [_ref(factor), *joined, {"enum": ["none", None]}]}


def _any_of(word: Schema) -> Schema:
    return {"anyOf": [word, {"type": "array", "items": word, "minItems": 1}]}


def _exclude() -> Schema:
    return _list_of(_ref("condition"), MOST_CONDITIONS)


def _first() -> Schema:
    return _list_of(_ref("condition"), MOST_CONDITIONS)


def _tune() -> Schema:
    whole = {"type": "integer", "minimum": 1, "maximum": MOST_TRIALS}
    number: Schema = {"type": "number"}
    ends = {
        "low": number | {"description": "The least number."},
        "high": number | {"description": "The largest number."},
        "log": {"type": "boolean", "description": "Whether it is drawn evenly in its logarithm."},
        "step": {"type": "number", "exclusiveMinimum": 0, "description": "How far apart two neighbouring values are."},
    }
    drawn: Schema = {
        "anyOf": [{"type": "array", "minItems": 2, "uniqueItems": True}, _object(ends, required=["low", "high"])]
    }
    tuned = [name for name in factors() if name.partition(".")[0] not in UNTUNED]
    parameters = _object({name: _about(name, drawn) for name in tuned}, maxProperties=MOST_PARAMETERS)
    own = {name: _about(name, {"anyOf": [*drawn["anyOf"], _NULL]}) for name in tuned}
    both = {
        "when": {"description": "The condition."} | _ref("condition"),
        "parameters": {"description": "Laid over those of all cells."} | _object(own, maxProperties=MOST_PARAMETERS),
    }
    properties: Schema = {
        "parameters": parameters,
        "overrides": _list_of(_object(both), MOST_CONDITIONS, required=[*both]),
        "sampler": {"enum": [*Sampler], "default": Sampler.TPE},
        "pruner": {"enum": [*Pruner], "default": Pruner.NONE},
        "trials": whole,
        "round": whole | {"default": ROUND},
        "seeds": {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 1000},
                {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**32},
                    "minItems": 1,
                    "uniqueItems": True,
                },
            ],
            "default": 1,
        },
        "seed": {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**32, "default": 0},
        "metric": {"type": "string", "pattern": "^valid/"},
    }
    return _object({key: {"description": KEYS[key]} | schema for key, schema in properties.items()})


def _overrides() -> Schema:
    given = {**_settings(), **{name: _ref(name) for name in factors()}}
    both = {
        "when": {"description": "The condition."} | _ref("condition"),
        "set": {"description": "The settings, nested or by factor."} | _object(given),
    }
    return _list_of(_object(both), MOST_CONDITIONS, required=[*both])


def _include() -> Schema:
    given = {**_settings(), **{name: _ref(name) for name in factors()}}
    return _list_of(_object(given, additionalProperties=_WORD), MOST_CONDITIONS)


def _preset() -> Schema:
    return {"enum": [*presets()]}


def _sub_grids() -> Schema:
    return _entries({"anyOf": [_ref("sub-grid"), _NULL]})


def _tasks() -> Schema:
    return _sub_grids() | {"propertyNames": {"anyOf": [{"enum": [*TASKS]}, IN_A_FILE]}}


def _seeds() -> Schema:
    alone = {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**32}
    listed = {"anyOf": [alone, {"type": "string", "pattern": f"^{WORD}$"}]}
    return {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 1_000_000},
            {"type": "array", "items": listed, "minItems": 1, "uniqueItems": True},
            _seed_rule(),
            _source_seeds(),
        ],
        "default": 1,
    }


def _source_seeds() -> Schema:
    words = descriptions(Source)
    whole = {"type": "integer", "minimum": 0, "maximum": MOST_APART}
    listed = {"type": "array", "items": whole, "minItems": 1, "uniqueItems": True}
    seeds = [{"type": "integer", "minimum": 1, "maximum": MOST_APART + 1}, listed]
    return _object({source.value: {"description": words[source.name], "anyOf": seeds} for source in Source})


def _seed_rule() -> Schema:
    width = {"type": "number", "exclusiveMinimum": 0}
    widths = {"type": "object", "additionalProperties": width, "minProperties": 1}
    rule = {name: field_schema(SeedRule, name) for name in ("min", "max")}
    rule["until"] = {"description": descriptions(SeedRule)["until"], "anyOf": [{"const": DECIDED}, widths]}
    return _object(rule)  # of which an extending grid may have a part


def _text(**more: Any) -> Schema:
    return {"type": "string", "pattern": r"\S", **more}


def _evaluations() -> Schema:
    properties = {}
    for name, schema in fields_schema(EvaluationSettings).items():
        alone = {key: schema[key] for key in schema if key not in ("description", "default")}
        many = {"type": "array", "items": alone, "minItems": 1}
        properties[name] = {"description": schema["description"], "anyOf": [alone, many]}
    return _entries({"anyOf": [_object(properties), _NULL]})


def _tables() -> Schema:
    table = fields_schema(TableSpec)
    word = {"type": [*_WORD["type"], "array"]}
    for key in ("rows", "columns"):
        table[key] = {"description": table[key].pop("description"), "anyOf": [{"type": "string"}, table[key]]}
    table["where"] = {"description": table["where"]["description"]} | _entries(word)
    table["baseline"] = {"description": table["baseline"]["description"], "anyOf": [_entries(word), _WORD]}
    required = [name for name, info in TableSpec.model_fields.items() if info.is_required()]
    return {
        "type": "array",
        "items": _object(table, required=required),
        "minItems": 1,
        "maxItems": MOST_TABLES,
    }


_OF_GRID = {
    "name": lambda: _text(pattern=PATTERN, maxLength=LONGEST_NAME),
    "description": _text,
    "extends": lambda: {"type": "string"},
    "seeds": _seeds,
    "first": _first,
    "tune": _tune,
    "tables": _tables,
    "evaluations": _evaluations,
    "tasks": lambda: _or_null(_tasks()),
    "grids": lambda: _or_null(_sub_grids()),
    "axes": lambda: _or_null(_axes()),
    "zip": _zip,
    "approaches": lambda: _or_null(_approaches()),
    "ablate": _ablate,
    "exclude": _exclude,
    "include": _include,
    "overrides": _overrides,
    "preset": _preset,
}

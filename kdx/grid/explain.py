"""Explains a key or a value of a grid, by the schema of a grid and the definitions of values."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kdx.components.find import is_in_file
from kdx.components.registry import FAMILY_OF
from kdx.errors import KdxError, shortened
from kdx.grid.components import add_any, add_installed
from kdx.grid.evaluations import EvaluationSettings
from kdx.grid.field_types import Schema, descriptions
from kdx.grid.fields import CellFields
from kdx.grid.model import GRID, GridFile, Override
from kdx.grid.plan import TableSpec
from kdx.grid.schema import SECTIONS, alternatives, keys, schema_of
from kdx.grid.seeds import SeedRule
from kdx.grid.source import in_flow_style
from kdx.grid.synonyms import did_you_mean
from kdx.grid.tuning import Tune
from kdx.grid.words import known_options, owners
from kdx.words.option import Option


@dataclass(frozen=True)
class Explained:
    """A key of a grid, with its section before it, or a value; a text is empty where it does not apply."""

    name: str
    description: str
    keys: tuple[str, ...] = ()
    """The keys under which a value means this; empty for a key."""
    formula: str = ""
    source: str = ""
    """The paper of a value, with the equation or section."""
    uses: tuple[str, ...] = ()
    """The keys that a value makes use of."""
    options: tuple["Explained", ...] = ()
    """The keys that come with a value."""
    of: tuple[str, ...] = ()
    """The values that a key comes with; empty for a key that every cell has."""
    allowed: str = ""
    """The kinds and the limits of the values of a key."""
    default: str = ""
    """The default of a key, as YAML writes it."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Value of a key → its title; the keys of a section are among them."""
    example: str = ""
    """Lines of a grid."""


def key_list() -> dict[str, dict[str, str]]:
    """Return every key with its description, by what it belongs to."""
    listed: dict[str, dict[str, str]] = {group: {} for group in ("grid", "cell", *SECTIONS, "options")}
    texts = descriptions(GridFile)
    listed["grid"] = {key: texts[key] for key in GRID}
    for key in keys():
        group = key.rpartition(".")[0] or ("options" if key in known_options() else "cell")
        listed[group][key] = _description(key)
    return listed


def explain(name: str, folder: Path = Path()) -> list[Explained]:
    """Return all that a name means, keys first.

    Args:
        name: a key, with its section or without it, or a value; also `FILE.py:Class`.
        folder: where such a file is looked for.

    Raises:
        KdxError: it is no key and no value; or the file has no such class.
    """
    if is_in_file(name):
        if not any(name in family.outside for family in FAMILY_OF.values()):
            add_any(name, GRID, folder)
    else:
        add_installed(GRID)
    explained = []
    inner = {f"{section}.{key}": text for section in _MAPPINGS for key, text in _inner_keys(section).items()}
    if name in GRID:
        keys_of = {key: text for key, text in inner.items() if key.startswith(f"{name}.")}
        explained.append(Explained(name, descriptions(GridFile)[name], values=keys_of, example=EXAMPLES[name]))
    if name in SECTIONS:
        explained.append(_section(name))
    explained += [_key(key) for key in keys() if name in (key, key.rpartition(".")[2])]
    explained += [
        Explained(key, text, example=EXAMPLES[key.partition(".")[0]])
        for key, text in inner.items()
        if name in (key, key.rpartition(".")[2])
    ]
    explained += _meanings(name)
    if not explained:
        dotted = [*keys(), *inner]
        names = [*GRID, *SECTIONS, *dotted, *(key.rpartition(".")[2] for key in dotted)]
        known = dict.fromkeys([*names, *(value for key in keys() for value in _titles(key))])
        hint = did_you_mean(name, known)
        raise KdxError(f"no key or value `{shortened(name)}`", hint=hint or "`kdx explain` lists the keys")
    return explained


def _inner_keys(section: str) -> dict[str, str]:
    """Return each key of a mapping, as a grid writes it, with its description."""
    model = _MAPPINGS[section]
    texts = descriptions(model)
    return {field.alias or name: texts[name] for name, field in model.model_fields.items()}


def _description(key: str) -> str:
    return str(schema_of(key)["description"])


def _titles(key: str) -> dict[str, str]:
    """Return the values of a key that have names, each with its title."""
    named = (schema for schema in alternatives(schema_of(key)) if "const" in schema)
    return {schema["const"]: schema.get("title", "") for schema in named}


def _key(key: str) -> Explained:
    schema = schema_of(key)
    default = schema.get("default")
    of = owners(key) if key in known_options() or key.startswith("data.") else ()
    return Explained(
        key,
        _description(key),
        of=tuple(of),
        allowed=_allowed(schema),
        default="" if default in (None, []) else in_flow_style(default),
        values=_titles(key),
        example=_line(key, _value(schema)),
    )


def _section(section: str) -> Explained:
    inner = {key: _description(key) for key in keys() if key.startswith(f"{section}.")}
    titles = [_titles(key) for key in inner]
    shared = titles[0] if all(each == titles[0] for each in titles) else {}
    first = next(iter(inner))
    return Explained(
        section,
        descriptions(CellFields)[section],
        allowed="a mapping of keys",
        values=inner | shared,
        example=_line(first, _value(schema_of(first))),
    )


def _meanings(value: str) -> Iterator[Explained]:
    """Yield each meaning of a value once, with all keys under which it has it: they have the same values."""
    meanings: dict[tuple[str, str], list[str]] = {}
    for key in keys():
        titles = _titles(key)
        if value in titles:
            meanings.setdefault((json.dumps(titles), titles[value] or _description(key)), []).append(key)
    for (_, description), under in meanings.items():
        axis = "corpus" if under == ["data.corpus"] else under[0].partition(".")[0]
        family = FAMILY_OF.get(axis)
        known = family.definition(value) if family is not None and value in family else None
        options = known.options if known else ()
        yield Explained(
            value,
            description,
            keys=tuple(under),
            formula=getattr(known, "formula", ""),
            source=getattr(known, "source", ""),
            uses=getattr(known, "takes", ()),
            options=tuple(_option(option, "data." if axis == "corpus" else "") for option in options),
            example=_example(under[-1], value, options),
        )


def _option(option: Option, section: str) -> Explained:
    """Return an option as one value has it; corpora may have others with the same name and other limits."""
    return Explained(
        f"{section}{option.name}",
        option.title,
        allowed=option.allowed,
        default=in_flow_style(option.default),
        example=_line(f"{section}{option.name}", option.default),
    )


def _example(key: str, value: str, options: tuple[Option, ...]) -> str:
    section, _, name = key.rpartition(".")
    defaults = {option.name: option.default for option in options}
    if section == "data":
        return f"data: {in_flow_style({name: value, **defaults})}"
    return "\n".join([_line(key, value), *(_line(name, default) for name, default in defaults.items())])


def _line(key: str, value: Any) -> str:
    section, _, name = key.rpartition(".")
    return f"{section}: {in_flow_style({name: value})}" if section else f"{name}: {in_flow_style(value)}"


def _value(schema: Schema) -> Any:
    """Return a value that the schema allows, as an example."""
    if schema.get("default") not in (None, []):
        return schema["default"]
    if "examples" in schema:
        return schema["examples"][0]
    first = next(alternatives(schema))
    if "const" in first:
        return first["const"]
    return [_value(first["items"])] if first["type"] == "array" else max(first.get("minimum", 1), 1)


_KINDS = {"string": "a text", "number": "a number", "object": "a mapping", "null": "null"}


def _allowed(schema: Schema) -> str:
    """Return the kinds and limits of values in words."""
    kinds = []
    for alternative in alternatives(schema):
        if "const" in alternative:
            kinds.append("one of these values")
        elif "prefixItems" in alternative:
            kinds.append(f"a list of {' and '.join(map(_allowed, alternative['prefixItems']))}")
        elif "items" in alternative:
            item = alternative["items"]
            kinds.append("a list of them" if "anyOf" in item else f"a list, each {_allowed(item)}")
        else:
            kinds.append(alternative.get("title") or _KINDS[alternative["type"]])
    return ", or ".join(dict.fromkeys(kinds))


_MAPPINGS: dict[str, type[BaseModel]] = {
    "seeds": SeedRule,
    "tune": Tune,
    "tables": TableSpec,
    "evaluations": EvaluationSettings,
    "overrides": Override,
}
"""Keys of a grid that hold mappings, or lists of them, with keys that are no settings of a cell."""


EXAMPLES = {
    "name": "name: kernels",
    "description": "description: Which kernel compares best",
    "extends": "extends: quickstart",
    "seeds": "seeds: {min: 3, max: 12, until: decided}",
    "tune": "tune:\n  parameters:\n    training.learning_rate: {low: 1e-4, high: 1e-2, log: true}\n"
    "    model.dropout: [0.0, 0.1, 0.3]\n  sampler: random\n  trials: 10",
    "tables": "tables:\n  - {name: kernels, rows: [kernel], columns: [symmetry], "
    "baseline: {kernel: exponential}, margin: {bleu: 0.3}}",
    "evaluations": "evaluations:\n  longer: {length: [128, 256]}",
    "tasks": "tasks:\n  translation: {data: {corpus: synthetic-translation}}\n"
    "  prediction: {data: {corpus: synthetic-language}}",
    "grids": "grids:\n  small: {model: {width: 64}}\n  large: {model: {width: 256}}",
    "axes": "axes:\n  kernel: [exponential, rbf]\n  training.learning_rate: {from: 1e-4, to: 1e-2, log: 5}",
    "zip": "zip:\n  - {model.width: [64, 128], model.inner: [128, 256]}",
    "approaches": "approaches:\n  No position: {position: none}\n  Eq. 9: {position: product, symmetry: symmetric}",
    "exclude": "axes: {kernel: [linear, rbf], symmetry: [asymmetric, symmetric]}\n"
    "exclude:\n  - {kernel: linear, symmetry: symmetric}",
    "overrides": "axes: {kernel: [exponential, rbf]}\n"
    "overrides:\n  - {when: {kernel: rbf}, set: {training: {warmup: 400}}}",
    "preset": "preset: prediction-mini",
}
"""Lines of a grid for each of `GRID`; a test reads them."""

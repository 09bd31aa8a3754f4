"""What a key of a grid or a word of the study means, for somebody who asks: from the definitions, as the schema is."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.components.find import find_any, installed, is_in_file
from kdx.components.registry import FAMILY_OF, add
from kdx.errors import KdxError, shortened
from kdx.grid.descriptions import descriptions
from kdx.grid.fields import CellFields
from kdx.grid.model import GRID, GridFile
from kdx.grid.schema import SECTIONS, Schema, keys, schema_of
from kdx.grid.synonyms import did_you_mean
from kdx.grid.word_facts import Facts, facts_at
from kdx.grid.words import known_options, owners


@dataclass(frozen=True)
class ExplainedKey:
    """A key of a grid, of a cell, or of a section of it."""

    key: str
    """With its section before it: `training.steps`."""
    description: str
    allowed: str
    """The kinds and the limits of its values; empty of a key whose example shows them."""
    default: str
    """As YAML writes it; empty where there is none."""
    words: Mapping[str, str]
    """Word → what it is, in a line; of a section, its keys, and words that all of them have."""
    of: tuple[str, ...]
    """The words, tasks or corpora that bring it along; empty for a key that every cell has."""
    example: str
    """Lines of a grid."""


@dataclass(frozen=True)
class ExplainedWord:
    """A word, under the keys where it means this."""

    word: str
    keys: tuple[str, ...]
    title: str
    formula: str
    source: str
    takes: tuple[str, ...]
    """The keys of the cell that it makes use of."""
    options: tuple[ExplainedKey, ...]
    """The keys that it brings along."""
    example: str


def key_list() -> dict[str, dict[str, str]]:
    """Every key with what it is, by what it belongs to."""
    own = [key for key in keys() if "." not in key]
    of_words = [key for key in own if key in known_options()]
    of_cells = [key for key in own if key not in of_words]
    of_grid = descriptions(GridFile)
    found = {"grid": {key: of_grid[key] for key in GRID}, "cell": {key: _description(key) for key in of_cells}}
    for section in SECTIONS:
        inner = [key for key in keys() if key.startswith(f"{section}.")]
        found[section] = {key: _description(key) for key in inner}
    return found | {"words": {key: _description(key) for key in of_words}}


def explain(name: str, folder: Path = Path()) -> list[ExplainedKey | ExplainedWord]:
    """All that a name means: keys first.

    Args:
        name: a key, with its section or without it, or a word; also `FILE.py:Class`.
        folder: where such a file is looked for.

    Raises:
        KdxError: it is no key and no word; or the file has no such part.
    """
    if is_in_file(name):
        if not any(name in family.outside for family in FAMILY_OF.values()):
            add(find_any(name, folder))
    elif next(installed(), None):
        from kdx.grid.components import add_installed  # late: it needs YAML, and few have such packages

        add_installed(GRID)
    found: list[ExplainedKey | ExplainedWord] = []
    if name in GRID:
        found.append(ExplainedKey(name, descriptions(GridFile)[name], "", "", {}, (), EXAMPLES[name]))
    if name in SECTIONS:
        found.append(_section(name))
    found += [_key(key) for key in keys() if name in (key, key.rpartition(".")[2])]
    found += _words(name)
    if not found:
        known = dict.fromkeys([*GRID, *SECTIONS, *keys(), *(key.rpartition(".")[2] for key in keys())])
        known |= dict.fromkeys(word for key in keys() for word in _titles(key))
        hint = did_you_mean(name, known)
        raise KdxError(f"no key or word `{shortened(name)}`", hint=hint or "`kdx explain` lists the keys")
    return found


def _description(key: str) -> str:
    return str(schema_of(key)["description"])


def _key(key: str) -> ExplainedKey:
    schema = schema_of(key)
    default = _yaml(schema["default"]) if schema.get("default") is not None else ""
    is_option = key in known_options() or (key.startswith("data.") and owners(key))
    of = tuple(owners(key)) if is_option else ()
    return ExplainedKey(key, _description(key), _allowed(schema), default, _titles(key), of, _line(key, _value(schema)))


def _section(key: str) -> ExplainedKey:
    inner = {name: _description(name) for name in keys() if name.startswith(f"{key}.")}
    example = _line(first := next(iter(inner)), _value(schema_of(first)))
    words = [_titles(name) for name in inner]
    shared = words[0] if all(one == words[0] for one in words) else {}
    return ExplainedKey(key, descriptions(CellFields)[key], "a mapping of keys", "", inner | shared, (), example)


def _titles(key: str) -> dict[str, str]:
    """The words of a key, each with its title."""
    return {one["const"]: one.get("title", "") for one in schema_of(key).get("anyOf", ()) if "const" in one}


def _words(name: str) -> Iterator[ExplainedWord]:
    """Each meaning of a word once, with all keys under which it has it."""
    meanings: dict[tuple[str, Facts], list[str]] = {}
    for key in keys():
        titles = _titles(key)
        if name in titles:
            facts = facts_at(key, name) or Facts(name, titles[name] or _description(key))
            # Keys that share a list of words share what a word means; other keys may have a word of the same title.
            meanings.setdefault((json.dumps(titles), facts), []).append(key)
    for (_, facts), under in meanings.items():
        section = "data." if under == ["data.corpus"] else ""
        options = tuple(_option(one.name, section, facts) for one in facts.options)
        example = _example(under[-1], facts)
        yield ExplainedWord(name, tuple(under), facts.title, facts.formula, facts.source, facts.takes, options, example)


def _option(name: str, section: str, facts: Facts) -> ExplainedKey:
    """A key of this word; under the same name another corpus may have one with other limits."""
    (option,) = (one for one in facts.options if one.name == name)
    key = f"{section}{name}"
    words = dict.fromkeys(option.words, "")
    line = _line(key, option.default)
    return ExplainedKey(key, option.title, "" if words else option.allowed, _yaml(option.default), words, (), line)


def _example(key: str, facts: Facts) -> str:
    options = {one.name: one.default for one in facts.options}
    if key == "data.corpus":
        return f"data: {_yaml({'corpus': facts.word, **options})}"
    return "\n".join([_line(key, facts.word), *(_line(name, value) for name, value in options.items())])


def _line(key: str, value: Any) -> str:
    section, _, name = key.rpartition(".")
    return f"{section}: {_yaml({name: value})}" if section else f"{name}: {_yaml(value)}"


def _yaml(value: Any) -> str:
    """A value in the flow style of YAML."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_yaml(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    return str(value) if isinstance(value, str) else json.dumps(value)


def _value(schema: Schema) -> Any:
    """One that the schema allows, to be shown as an example."""
    if schema.get("default") not in (None, []):
        return schema["default"]
    if "examples" in schema:
        return schema["examples"][0]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return _value(schema["anyOf"][0])
    if "array" in schema["type"]:
        return [_value(schema["items"])]
    return max(schema.get("minimum", 1), 1)


def _allowed(schema: Schema) -> str:
    """The kinds and limits of values, in words."""
    alternatives = schema.get("anyOf", [schema])
    words = ["one of these words"] if any("const" in one for one in alternatives) else []
    kinds = [kind for one in alternatives if "const" not in one for kind in _kinds(one)]
    return ", or ".join(dict.fromkeys([*words, *kinds]))


def _kinds(schema: Schema) -> Iterator[str]:
    of = schema["type"]
    for kind in [of] if isinstance(of, str) else of:
        if kind in ("integer", "number"):
            yield f"{'a whole number' if kind == 'integer' else 'a number'}{_limits(schema)}"
        elif kind == "array":
            yield _list(schema)
        else:
            yield {"string": schema.get("title", "a text"), "null": "null", "object": "a mapping"}[kind]


def _list(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"a list of {' and '.join(_allowed(one) for one in schema['prefixItems'])}"
    return "a list of them" if "anyOf" in schema["items"] else f"a list, each {_allowed(schema['items'])}"


_LIMITS = {
    "minimum": "from {:g} on",
    "exclusiveMinimum": "above {:g}",
    "maximum": "up to {:g}",
    "exclusiveMaximum": "below {:g}",
}


def _limits(schema: Schema) -> str:
    # What every number of a grid keeps to, such as 64 bits, is no limit to anybody.
    given = [text.format(schema[key]) for key, text in _LIMITS.items() if key in schema and schema[key] < 2**53]
    return f" {', '.join(given)}" if given else ""


EXAMPLES = {
    "name": "name: kernels",
    "description": "description: Which kernel compares best",
    "extends": "extends: quickstart",
    "seeds": "seeds: [0, 1, 2]",
    "tune": "tune:\n  parameters:\n    training.learning_rate: {low: 1e-4, high: 1e-2, log: true}\n"
    "    model.dropout: [0.0, 0.1, 0.3]\n  sampler: random\n  trials: 10",
    "tables": "tables:\n  - {name: kernels, rows: [kernel], columns: [symmetry]}",
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

"""The JSON Schema of a grid accepts what kdx accepts, and finds at its key what a file alone shows to be wrong."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kdx.components.find import IN_FILE
from kdx.errors import Faults
from kdx.grid.cell_selector import factors
from kdx.grid.cell_selector import settings as settings_of_a_cell
from kdx.grid.field_types import IN_A_FILE
from kdx.grid.load import load_grid
from kdx.grid.model import GRID, SUB_GRID
from kdx.grid.schema import alternatives, grid_schema, keys, option_schema, schema_of
from kdx.grid.shipped import find, names
from kdx.grid.source import read
from kdx.grid.words import owners
from kdx.words.option import Option

SCHEMA = grid_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def words(key: str) -> list[dict[str, Any]]:
    """The words of a key, each with what the schema says of it."""
    return [schema for schema in alternatives(schema_of(key)) if "const" in schema]


def written(text: str, folder: Path) -> Path:
    file = folder / "grid.yaml"
    file.write_text(text)
    return file


def plain(grid: str | Path) -> dict[str, Any]:
    return read(find(grid), []).plain()


def faulty_paths(value: Any) -> set[tuple[str | int, ...]]:
    """The path of every key that the schema finds at fault; of an unknown key, that of the key itself."""
    found = set()
    left = [*VALIDATOR.iter_errors(value)]
    while left:
        error = left.pop()
        left += error.context or ()
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            found |= {(*path, key) for key in error.instance.keys() - error.schema["properties"].keys()}
        elif "propertyNames" in error.absolute_schema_path:
            found.add((*path, error.instance))
        elif error.validator != "anyOf":
            found.add(path)
    return found


def wrong_at(value: Any) -> set[str]:
    """The same, with dots."""
    return {".".join(map(str, path)) for path in faulty_paths(value)}


def test_it_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_it_has_every_key_of_a_grid():
    assert SCHEMA["properties"].keys() == {*GRID, *settings_of_a_cell()}
    assert SCHEMA["$defs"]["SubGrid"]["properties"].keys() == {*SUB_GRID, *settings_of_a_cell()}


def _objects(schema: Any) -> Any:
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict) and schema.get("type") in ("object", ["object", "null"]):
            yield schema
        for inner in schema.values():
            yield from _objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _objects(inner)


def test_every_key_says_what_it_is():
    silent = []
    for schema in _objects(SCHEMA):
        for key, inner in schema["properties"].items():
            target = inner
            for step in inner.get("$ref", "#").split("/")[1:]:
                target = (SCHEMA if step == "$defs" else target)[step]
            # What may be said of a factor beside its value, such as a condition, is described with the value.
            if not (inner.get("description") or target.get("description") or key in factors()):
                silent.append(key)
    assert set(silent) == {"not"}
    assert all(schema_of(factor)["description"] for factor in factors())


def test_an_editor_does_not_load_a_megabyte():
    assert len(json.dumps(SCHEMA, separators=(",", ":"))) < 150_000


def test_every_word_says_what_it_is():
    """Those of options alone are explained with their key."""
    silent = {key for key in keys() for word in words(key) if not word.get("title")}
    assert {key for key in silent if not owners(key)} == set()


@each("grid", names())
def test_every_shipped_grid_is_valid(grid):
    assert wrong_at(plain(grid)) == set()


BASE = """
task: translation
data: {corpus: synthetic-translation}
"""

FAULTY = {
    "kernl: rbf": "kernl",
    "kernel: rfb": "kernel",
    "position: [lookup, nowhere]": "position.1",
    "symmetry: true": "symmetry",
    "temperature: 0": "temperature",
    "kernel: ../secret.py:Cauchy": "kernel",
    "model: {widht: 64}": "model.widht",
    "model: {width: 0}": "model.width",
    "model: {heads: '4'}": "model.heads",
    "model: 64": "model",
    "training: {betas: [0.9]}": "training.betas",
    "training: {steps: null}": "training.steps",
    "filter: {decoder: causal}": "filter.decoder",
    "select: {metric: loss, direction: up}": "select.direction",
    "axes: {kernl: [rbf]}": "axes.kernl",
    "axes: {kernel: rbf}": "axes.kernel",
    "axes: {kernel: [rbf, rfb]}": "axes.kernel.1",
    "axes: {training.steps: {from: 1, to: 5, steps: 1}}": "axes.training.steps.steps",
    "zip: [{kernel: rbf}]": "zip.0.kernel",
    "approaches: {One: {kernl: rbf}}": "approaches.One.kernl",
    "axes: {kernel: [rbf, linear]}\nexclude: [{kernel: {}}]": "exclude.0.kernel",
    "axes: {kernel: [rbf, linear]}\noverrides: {when: {kernel: rbf}, set: {modle: {}}}": "overrides.set.modle",
    "preset: translation-huge": "preset",
    "seeds: 0": "seeds",
    "seeds: [1, 1]": "seeds",
    "seeds: {min: 1, max: 3, until: decided}": "seeds.min",
    "name: ' '": "name",
    "evaluations: {wide: {beams: 4}}": "evaluations.wide.beams",
    "evaluations: {wide: {beam: [4, 0]}}": "evaluations.wide.beam.1",
    "tables: [{name: one, rows: []}]": "tables.0.rows",
    "tables: [{name: one, rows: kernel, cell: median}]": "tables.0.cell",
    "tables: [{name: one, rows: kernel, margin: {bleu: 0%}}]": "tables.0.margin.bleu",
}


@pytest.mark.parametrize(("text", "path"), FAULTY.items(), ids=FAULTY)
def test_what_a_file_shows_to_be_wrong_is_found_at_its_key(text, path, tmp_path):
    assert path in wrong_at(plain(written(BASE + text, tmp_path)))


def test_a_grid_that_extends_another_may_take_entries_out_and_need_not_be_whole():
    part = {"tasks": {}, "axes": {"training.steps": {"to": 500}, "size": {}}, "exclude": {}, "overrides": {"set": {}}}
    assert wrong_at({"extends": "base.yaml", **part}) == set()
    assert wrong_at({"extends": "base.yaml", "approaches": {"One": None}, "axes": {"kernel": None}}) == set()


def test_a_task_of_ones_own_may_have_a_part_of_the_grid():
    assert wrong_at({"tasks": {"my.py:Task": {}}}) == set()
    assert ("tasks", "translate") in faulty_paths({"tasks": {"translate": {}}})


LANGUAGE = [
    "axes:\n  training.learning_rate: {from: 1e-4, to: 1e-2, log: 5}",
    "axes: {data.seed: {from: 0, to: 4, step: 2}}",
    "axes: {position: [none, product, [product, lookup]]}\nexclude: {position: lookup+product}",
    "axes: {size: {small: {model: {width: 32}}, large: {}}}",
    "zip: {model.width: [32, 64], model.inner: [64, 128]}",
    "axes: {kernel: [linear, rbf]}\noverrides: {when: {not: {kernel: rbf}}, set: {training.warmup: 4, norm: pre}}",
    "axes: {training.clip: [null, 1]}\nexclude: {training.clip: none, kernel: exponential}",
    "evaluations: {wide: {beam: [2, 4], longest: [[1.5, 5], [2, 10]]}}",
    "tables: [{name: one, rows: kernel, columns: symmetry, baseline: exponential, margin: {bleu: 1%}}]",
    "temperature: null",
    "seeds: [3, 5]",
]


@pytest.mark.parametrize("text", LANGUAGE)
def test_the_grid_language_is_valid(text, tmp_path):
    file = written(BASE + text, tmp_path)
    load_grid(file)
    assert wrong_at(plain(file)) == set()


def shipped(grid: str) -> dict[str, Any]:
    """A shipped grid that may lie anywhere."""
    found = plain(grid)
    return found | ({"extends": str(find(grid).parent / found["extends"])} if "extends" in found else {})


# Grids of few runs, which load in no time.
SMALL = {
    name: shipped(name) for name in names() if "mini" in name or name in ("quickstart", "spaces/set", "recall/recall")
}
WORDS = {key: [word["const"] for word in words(key)] for key in keys()}
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 600),
    st.sampled_from([0.0, 0.5, 1.0, 1e-3, [], {}, "1%", "loss", "quickstart", "lookup+product", ["lookup", "product"]]),
    st.sampled_from(sorted({word for words in WORDS.values() for word in words})),
)


@st.composite
def changed(draw) -> dict[str, Any]:
    """A shipped grid, with up to three values in it set, replaced or taken out."""
    grid = copy.deepcopy(SMALL[draw(st.sampled_from(sorted(SMALL)))])
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            key = draw(st.sampled_from(keys()))
            value = draw(st.sampled_from(WORDS[key])) if WORDS[key] and draw(st.booleans()) else draw(values)
            value = copy.deepcopy(value)
            section, _, name = key.rpartition(".")
            how = draw(st.sampled_from(["set", "axis", "exclude"]))
            if how == "set":
                inner = grid.setdefault(section, {}) if section else grid
                if isinstance(inner, dict):
                    inner[name] = value
            elif how == "axis" and isinstance(axes := grid.setdefault("axes", {}), dict):
                axes[key] = draw(st.sampled_from([[value], value]))
            else:
                # A word that no cell can have would be accepted on an axis where it is excluded.
                grid["exclude"] = [{key: draw(st.sampled_from(WORDS[key] or [1, 100]))}]
            continue
        inner = grid
        while isinstance(inner, dict | list) and inner:
            steps = sorted(inner) if isinstance(inner, dict) else range(len(inner))
            step = draw(st.sampled_from(steps))
            if isinstance(inner[step], dict | list) and inner[step] and draw(st.booleans()):
                inner = inner[step]
                continue
            if draw(st.booleans()):
                inner[step] = copy.deepcopy(draw(values))
            else:
                del inner[step]
            break
    return grid


@given(changed())
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_kdx_accepts_is_valid(tmp_path, grid):
    """As far as kdx looks at it: what an axis overrules in every cell, or no word takes, the schema judges anyway."""
    file = written(json.dumps(grid), tmp_path)
    if not is_accepted(file):
        return
    paths = faulty_paths(plain(file))
    for path in paths:
        if any(longer[: len(path)] == path for longer in paths - {path}):
            continue  # It is at fault for what stands in it.
        other = copy.deepcopy(grid)
        inner = other
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = {"no value": "of any key"}
        assert is_accepted(written(json.dumps(other), tmp_path)), f"{path} of {grid}"


def is_accepted(file: Path) -> bool:
    try:
        load_grid(file)
    except Faults:
        return False
    return True


VALUES = [None, True, -1, 0, 1, 2, 0.5, 1.5, 2**63, "none", "", "a", "1%", "0%", [], [1], [0.9, 0.98], [0.9, 1, 2], {}]
OPTIONS = [
    Option(1.0, above=0, name="x"),
    Option(3, minimum=1, maximum=5, name="x"),
    Option(2, minimum=2, multiple_of=2, name="x"),
    Option(0.5, minimum=0, below=1, also=("none", "learned"), name="x"),
    Option("a", words=("a", "b"), name="x"),
    Option("none", words=("none", "a"), name="x"),
]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.allowed)
def test_an_option_takes_in_the_schema_what_it_takes_in_a_cell(option):
    for value in [*VALUES, 5, 6, 5.5, "b"]:
        try:
            option.value(value)
            right = True
        except ValueError:
            right = value is None  # A cell reads it as not written.
        assert Draft202012Validator(option_schema([option])).is_valid(value) is right, value


def test_a_key_that_corpora_declare_differently_takes_what_either_takes():
    schema = option_schema([Option(2, minimum=2, title="One.", name="x"), Option(9, maximum=1, title="Two.")])
    assert (
        all(Draft202012Validator(schema).is_valid(value) for value in (1, 2)) and schema["description"] == "One. Two."
    )
    assert "default" not in schema


IN_FILES = ["my.py:Cauchy", "parts/my-kernels.py:C_1", f"{'a' * 97}.py:C"]
NOT_IN_FILES = ["../my.py:C", "/my.py:C", "my.py:", "my.py:1", "my.txt:C", "rbf", ".py:C", f"{'a' * 98}.py:C"]
NOT_IN_FILES += ["a//b.py:C", "é.py:C"]


@pytest.mark.parametrize("word", [*IN_FILES, *NOT_IN_FILES, "a.py/b.py:C"])
def test_a_word_from_a_file_is_one_that_kdx_looks_for(word):
    assert bool(re.search(IN_A_FILE["pattern"], word)) is bool(IN_FILE.fullmatch(word))

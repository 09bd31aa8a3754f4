"""What one key of a cell takes, as JSON Schema: the kinds, the limits and the words of its field or of its options."""

import re

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from kdx.components.find import IN_FILE
from kdx.grid.evaluations import EvaluationSettings
from kdx.grid.field_schema import IN_A_FILE, field_schema, fields_schema, option_schema, word_schema
from kdx.grid.fields import CellFields
from kdx.grid.plan import TableSpec
from kdx.grid.sections import Evaluation, Model, Select, Training
from kdx.grid.word_facts import Facts
from kdx.words.option import Option

VALUES = [None, True, -1, 0, 1, 2, 0.5, 1.5, 2**63, "none", "", "a", "1%", "0%", [], [1], [0.9, 0.98], [0.9, 1, 2], {}]
WHOLE = [(Model, "width"), (Model, "dropout"), (Model, "cutoffs"), (Training, "betas"), (Training, "clip")]
WHOLE += [(Training, "warmup"), (Training, "schedule"), (Evaluation, "longest"), (Evaluation, "memory")]
WHOLE += [(EvaluationSettings, "corpus"), (EvaluationSettings, "longest"), (EvaluationSettings, "split")]
REST = {Select: {"metric": "loss"}, TableSpec: {"name": "t", "rows": ["kernel"]}}


def accepts(schema, value) -> bool:
    return Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(("model", "name"), [*WHOLE, (Select, "direction"), (TableSpec, "margin"), (TableSpec, "rows")])
def test_a_field_takes_in_the_schema_what_it_takes_in_a_cell(model, name):
    schema = field_schema(model, name)
    for value in [*VALUES, {"bleu": "1%"}, {"bleu": "0%"}, {"bleu": 0.5}, {"bleu": 0}, "gnmt", "cosine", "max", "test"]:
        try:
            model.model_validate(REST.get(model, {}) | {name: value})
            right = True
        except ValidationError as error:
            right = not any(one["loc"][:1] == (name,) for one in error.errors())
        assert accepts(schema, value) is right, value


def test_a_field_has_its_default_and_its_description():
    schema = field_schema(Training, "betas")
    assert schema["default"] == [0.9, 0.98] and schema["description"].startswith("Decay rates")
    assert "default" not in field_schema(Select, "metric")


def test_a_section_has_the_names_that_a_grid_writes():
    from kdx.grid.sections import Filters

    assert [*fields_schema(Filters)] == ["encoder-self", "encoder-decoder", "decoder-self"]


@pytest.mark.parametrize("value", ["none", "product", ["product", "lookup"], [], ["none"], "my.py:Scheme"])
def test_schemes_are_a_word_or_a_list(value):
    assert accepts(field_schema(CellFields, "position"), value)
    assert not accepts(field_schema(CellFields, "position"), [[value]])


OPTIONS = [
    Option(1.0, above=0, name="x"),
    Option(3, minimum=1, maximum=5, name="x"),
    Option(0.5, minimum=0, below=1, none=True, name="x"),
    Option("a", words=("a", "b"), name="x"),
    Option("none", words=("none", "a"), none=True, name="x"),
]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.allowed)
def test_an_option_takes_in_the_schema_what_it_takes_in_a_cell(option):
    for value in [*VALUES, 5, 6, 5.5, "b"]:
        try:
            option.value(value)
            right = True
        except ValueError:
            right = value is None  # A cell reads it as not written.
        assert accepts(option_schema("x", [option]), value) is right, value


def test_a_key_that_corpora_declare_differently_takes_what_either_takes():
    schema = option_schema("x", [Option(2, minimum=2, title="One.", name="x"), Option(9, maximum=1, title="Two.")])
    assert accepts(schema, 1) and accepts(schema, 2) and schema["description"] == "One. Two."
    assert "default" not in schema


def test_a_word_has_title_formula_and_source():
    schema = word_schema(Facts("rbf", "Title", "k = 1", "A paper"))
    assert schema == {"const": "rbf", "title": "Title", "description": "Title\n\nk = 1\n\nA paper"}
    assert word_schema(Facts("rbf")) == {"const": "rbf"}


IN_FILES = ["my.py:Cauchy", "parts/my-kernels.py:C_1", f"{'a' * 97}.py:C"]
NOT_IN_FILES = ["../my.py:C", "/my.py:C", "my.py:", "my.py:1", "my.txt:C", "rbf", ".py:C", f"{'a' * 98}.py:C"]
NOT_IN_FILES += ["a//b.py:C", "é.py:C"]


@pytest.mark.parametrize("word", [*IN_FILES, *NOT_IN_FILES, "a.py/b.py:C"])
def test_a_word_from_a_file_is_one_that_kdx_looks_for(word):
    assert bool(re.search(IN_A_FILE["pattern"], word)) is bool(IN_FILE.fullmatch(word))

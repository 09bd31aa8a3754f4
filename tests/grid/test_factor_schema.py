"""Every factor has a schema, which knows its words, its options and its limits."""

import pytest
from each import each
from jsonschema import Draft202012Validator

from kdx.grid.cell_selector import default_word, factors
from kdx.grid.factor_schema import factor_schema, keys
from kdx.tasks.corpora import BUILT_IN


@each("key", keys())
def test_a_default_is_allowed(key):
    schema = factor_schema(key)
    Draft202012Validator.check_schema(schema)
    assert "default" not in schema or Draft202012Validator(schema).is_valid(schema["default"])


def test_the_keys_are_the_factors_and_what_selects():
    assert set(keys()) == {*factors(), "select.metric", "select.direction"}


def test_a_default_is_that_of_a_cell():
    schema = factor_schema("training.steps")
    assert str(schema["default"]) == default_word("training.steps")


@each("corpus", [*BUILT_IN.addresses, "my-own.text", "my.py:Corpus"])
def test_a_corpus_is_built_in_stored_or_of_a_file(corpus):
    assert Draft202012Validator(factor_schema("data.corpus")).is_valid(corpus)


@pytest.mark.parametrize("corpus", ["", "../secret", "a" * 65, 3, None])
def test_another_corpus_is_none(corpus):
    assert not Draft202012Validator(factor_schema("data.corpus")).is_valid(corpus)


@pytest.mark.parametrize("key", ["kernl", "model.widht", "models.width", "training"])
def test_another_key_has_none(key):
    with pytest.raises(KeyError):
        factor_schema(key)

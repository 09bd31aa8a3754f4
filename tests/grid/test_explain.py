"""What a key or a word means, as its definition has it."""

import json

import pytest
from each import each
from jsonschema import Draft202012Validator

from kdx.attention.families import FAMILIES
from kdx.errors import KdxError
from kdx.grid.explain import EXAMPLES, ExplainedKey, ExplainedWord, explain, key_list
from kdx.grid.model import GRID
from kdx.grid.schema import grid_schema, keys
from kdx.grid.source import read
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN

VALIDATOR = Draft202012Validator(grid_schema())


def is_grid(text: str, folder) -> bool:
    file = folder / "grid.yaml"
    file.write_text(text)
    return VALIDATOR.is_valid(read(file, []).plain())


def test_a_key_has_its_kind_its_limits_and_its_default():
    (found,) = explain("training.steps")
    assert isinstance(found, ExplainedKey)
    assert (found.allowed, found.default, found.words) == ("a whole number from 1 on", "1000", {})
    assert found.example == "training: {steps: 1000}"
    (found,) = explain("training.betas")
    assert found.allowed == "a list of a number from 0 on, below 1 and a number from 0 on, below 1"


def test_a_key_has_its_words_each_with_its_title():
    (found,) = explain("norm")
    assert isinstance(found, ExplainedKey) and found.default == "post"
    assert found.words["pre"] == "Before each sublayer (Xiong et al. 2020)"


def test_a_key_without_its_section_is_every_key_of_this_name():
    assert [one.key for one in explain("clip")] == ["training.clip", "clip"]
    assert [one.key for one in explain("steps")] == ["training.steps", "data.steps"]


def test_an_option_has_the_words_that_bring_it_along():
    (found,) = explain("temperature")
    assert isinstance(found, ExplainedKey) and found.of == ("exponential", "rbf")


def test_a_section_has_its_keys():
    (found,) = explain("select")
    assert isinstance(found, ExplainedKey) and [*found.words] == ["select.metric", "select.direction"]
    (found,) = explain("filter")
    assert found.words["filter.decoder-self"] and found.words["causal"]


def test_a_word_has_formula_source_and_options():
    (found,) = explain("rbf")
    assert isinstance(found, ExplainedWord)
    assert (found.keys, found.source) == (("kernel",), "Tsai et al. 2019, Table 2")
    assert found.formula == "k(q, k) = exp(-|q - k|² / T√D)"
    (temperature,) = found.options
    assert (temperature.key, temperature.allowed, temperature.default) == ("temperature", "a number above 0", "1.0")


def test_a_word_of_several_keys_is_told_once_where_it_means_the_same():
    (found,) = explain("strided")
    assert found.keys == ("filter.encoder-self", "filter.encoder-decoder", "filter.decoder-self")
    biases = [one for one in explain("none") if isinstance(one, ExplainedWord) and "model.bias" in one.keys]
    assert [one.keys for one in biases] == [("model.bias", "model.feed_forward_bias", "model.normalisation_bias")]


def test_a_word_of_several_meanings_has_all():
    assert [one.keys[0] for one in explain("rms")] == ["qk_norm", "model.normalisation"]
    assert {"position", "qk_norm", "model.bias", "xl_bias"} <= {one.keys[0] for one in explain("none")}


def test_a_part_of_a_file_is_explained(own_kernel):
    (found,) = explain("my_kernels.py:Cauchy", own_kernel)
    assert found.keys == ("kernel",) and [option.key for option in found.options] == ["bandwidth"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("kernl", "did you mean `kernel`?"),
        ("training.step", "did you mean `training.steps`?"),
        ("lapacian", "did you mean `laplacian`?"),
        ("×", "`kdx explain` lists the keys"),
    ],
)
def test_what_is_neither_is_refused_with_the_nearest(name, hint):
    with pytest.raises(KdxError) as refusal:
        explain(name)
    assert (refusal.value.problem, refusal.value.hint) == (f"no key or word `{name}`", hint)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(KdxError, match="cannot read the file"):
        explain("my.py:Cauchy", tmp_path)


def test_every_key_is_listed_once_with_a_description():
    listed = [key for of in key_list().values() for key in of]
    assert sorted(listed) == sorted([*GRID, *keys()])
    assert all(text for of in key_list().values() for text in of.values())


WORDS = [*(word for family in FAMILIES for word in family), *BUILT_IN.addresses, *TASKS]


@each("name", [*dict.fromkeys([*EXAMPLES, *keys(), *WORDS, "none", "filter", "data"])])
def test_every_explanation_has_an_example_that_is_a_grid(name, tmp_path):
    for one in explain(name):
        assert is_grid(one.example, tmp_path), one.example
        json.dumps(vars(one) | {"options": []})

"""What a key or a value means, as its definition has it."""

import pytest
from each import each
from jsonschema import Draft202012Validator

from kdx.attention.families import FAMILIES
from kdx.errors import KdxError
from kdx.grid.explain import EXAMPLES, Explained, explain, key_list
from kdx.grid.model import GRID
from kdx.grid.schema import grid_schema, keys
from kdx.grid.source import read
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN

VALIDATOR = Draft202012Validator(grid_schema())


def only(name: str) -> Explained:
    (meaning,) = explain(name)
    return meaning


def test_a_key_has_its_kind_its_limits_and_its_default():
    steps = only("training.steps")
    assert (steps.allowed, steps.default, steps.values) == ("a whole number from 1 on", "1000", {})
    assert (steps.description, steps.example) == ("Optimiser steps of a run.", "training: {steps: 1000}")
    assert only("training.betas").allowed == "a list of a number from 0 on, below 1 and a number from 0 on, below 1"
    assert only("position").allowed == "one of these values, or FILE.py:Class, or a list of them"
    assert only("original_length").allowed.startswith("a whole number")


def test_a_key_has_its_values_each_with_its_title():
    norm = only("norm")
    assert (norm.default, norm.values["pre"]) == ("post", "Before each sublayer (Xiong et al. 2020)")
    assert only("placement").values["none"] == "None at all"


def test_a_key_without_its_section_is_every_key_of_this_name():
    assert [meaning.name for meaning in explain("clip")] == ["training.clip", "clip"]
    assert [meaning.name for meaning in explain("steps")] == ["training.steps", "data.steps"]


def test_an_option_has_the_values_that_it_comes_with():
    assert only("temperature").of == ("exponential", "rbf")


def test_a_section_has_its_keys():
    assert [*only("select").values] == ["select.metric", "select.direction"]
    values = only("filter").values
    assert values["filter.decoder-self"] and values["causal"]


def test_keys_of_tables_searches_rules_and_evaluations_are_explained():
    assert only("tune.trials").description == only("trials").description == "Trials of every cell."
    assert {"tables.rows", "tables.margin"} < {*only("tables").values}
    assert "overrides.set" in [meaning.name for meaning in explain("set")]
    assert [meaning.name for meaning in explain("length")[:4]][-1] == "evaluations.length"
    with pytest.raises(KdxError) as refusal:
        explain("tables.row")
    assert refusal.value.hint == "did you mean `tables.rows`?"


def test_a_value_has_formula_source_and_options():
    rbf = only("rbf")
    assert (rbf.keys, rbf.description) == (("kernel",), "Radial basis function")
    assert (rbf.formula, rbf.source) == ("k(q, k) = exp(-|q - k|² / T√D)", "Tsai et al. 2019, Table 2")
    (temperature,) = rbf.options
    assert (temperature.name, temperature.allowed, temperature.default) == (
        "temperature",
        "a number above 0, or learned",
        "1.0",
    )


def test_a_corpus_has_the_title_of_its_class_or_of_its_module():
    assert only("wikitext2").description.startswith("WikiText-2 (Merity et al. 2017)")
    recall = only("recall")
    assert (recall.source, recall.options[0].name) == ("Arora et al. 2023, Sec. 3", "data.pairs")


def test_a_value_of_several_keys_is_explained_once_where_it_means_the_same():
    assert only("strided").keys == ("filter.encoder-self", "filter.encoder-decoder", "filter.decoder-self")
    biases = [meaning.keys for meaning in explain("none") if "model.bias" in meaning.keys]
    assert biases == [("model.bias", "model.feed_forward_bias", "model.normalisation_bias")]


def test_a_value_of_several_meanings_has_all():
    assert [meaning.keys[0] for meaning in explain("rms")] == ["qk_norm", "model.normalisation"]
    assert {"position", "qk_norm", "model.bias", "xl_bias"} <= {meaning.keys[0] for meaning in explain("none")}


def test_a_class_of_a_file_is_explained(own_kernel):
    (meaning,) = explain("my_kernels.py:Cauchy", own_kernel)
    assert meaning.keys == ("kernel",) and [option.name for option in meaning.options] == ["bandwidth"]


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
    assert (refusal.value.problem, refusal.value.hint) == (f"no key or value `{name}`", hint)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(KdxError, match="cannot read the file"):
        explain("my.py:Cauchy", tmp_path)


def test_every_key_is_listed_once_with_a_description():
    listed = key_list()
    assert sorted(key for group in listed.values() for key in group) == sorted([*GRID, *keys()])
    assert all(text for group in listed.values() for text in group.values())


VALUES = [*(value for family in FAMILIES for value in family), *BUILT_IN.addresses, *TASKS]


@each("name", [*dict.fromkeys([*EXAMPLES, *keys(), *VALUES, "none", "filter", "data", "rows", "beam"])])
def test_every_explanation_has_a_description_and_an_example_that_is_a_grid(name, tmp_path):
    for meaning in explain(name):
        (tmp_path / "grid.yaml").write_text(meaning.example)
        assert meaning.description and VALIDATOR.is_valid(read(tmp_path / "grid.yaml", []).plain()), meaning

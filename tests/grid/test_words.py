"""Which words a cell computes with, and which keys they bring along."""

from kdx.grid.spec import CellSpec
from kdx.grid.words import known_options, options_in, owners, words_in

PREDICTION = {"task": "prediction", "data": {"corpus": "synthetic-language"}}


def cell(**settings: object) -> CellSpec:
    return CellSpec.model_validate({**PREDICTION, **settings})


def words(spec: CellSpec) -> list[str]:
    return [f"{family.axis} {word}" for family, word in words_in(spec.model_dump(mode="json", by_alias=True))]


def test_the_words_are_those_that_compute_something() -> None:
    assert words(cell(position="lookup", kernel="relu-squared")) == [
        "kernel relu-squared",
        "normaliser length",
        "mixer attention",
        "position lookup",
        "value without-position",
        "filter causal",
        "task prediction",
    ]
    fewer = ["mixer convolution", "value without-position", "filter causal", "task prediction"]
    assert words(cell(mixer="convolution")) == fewer


def test_an_unknown_word_is_passed_over() -> None:
    plain = cell().model_dump(mode="json", by_alias=True) | {"kernel": "theirs", "task": "dreaming"}
    assert "kernel" not in {family.axis for family, _ in words_in(plain)}
    assert "temperature" not in options_in(plain) and options_in({}) == options_in({"mixer": "attention"})


def test_a_cell_has_the_options_of_its_words_and_of_its_task() -> None:
    assert cell(kernel="linear").options == {}
    assert cell(kernel="rbf", temperature=2).options == {"temperature": 2.0}
    labelled = CellSpec.model_validate({"task": "classification", "data": {"corpus": "synthetic-order"}})
    assert labelled.option("pooling") == "mean"
    assert set(labelled.options) <= known_options().keys()


def test_who_brings_an_option_along() -> None:
    assert owners("temperature") == ["exponential", "rbf"] and owners("pooling") == ["classification"]

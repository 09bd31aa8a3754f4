"""Cells named by the words of their factors."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from kdx.grid.cell_selector import CellSelector, choice, factors, taken_axes, unknown
from kdx.grid.spec import CellSpec

SELECTOR: TypeAdapter[dict[str, str]] = TypeAdapter(CellSelector)


def spec(**choices: Any) -> dict[str, Any]:
    cell = CellSpec.model_validate({"task": "translation", "data": {"corpus": "synthetic"}, **choices})
    return cell.model_dump(mode="json", by_alias=True)


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ({"kernel": "rbf"}, "rbf"),
        ({"training.steps": 100}, "100"),
        ({"position": ["product", "direct-sum"]}, "direct-sum+product"),
        ({"placement": ["decoder-self", "encoder-self"]}, "encoder-self/decoder-self"),
        ({"position": []}, "none"),
        ({"normaliser": None}, "none"),
        ({"training.betas": [0.9, 0.98]}, "0.9/0.98"),
    ],
)
def test_yaml_becomes_words_in_the_order_of_a_resolved_cell(written: dict[str, Any], word: str) -> None:
    assert list(SELECTOR.validate_python(written).values()) == [word]


@pytest.mark.parametrize("wrong", [["kernel"], "kernel", {"training": {"steps": 1}}])
def test_what_is_no_mapping_of_words_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        SELECTOR.validate_python(wrong)


def test_a_section_is_no_choice() -> None:
    assert choice(spec(), "training") is None
    assert choice(spec(), "kernel.width") is None
    assert choice(spec(), "clip") == "none"


def test_every_field_of_a_cell_is_a_factor_but_the_selection() -> None:
    names = factors()
    assert {"task", "kernel", "filter.decoder-self", "data.corpus", "training.steps"} <= set(names)
    assert not any(name.startswith("select") for name in names)
    cell = spec()
    assert not [name for name in names if choice(cell, name) is None]


def faults(**where: str) -> list[tuple[str, str]]:
    return [(factor, str(fault)) for factor, fault in unknown({k.replace("__", "."): v for k, v in where.items()})]


def test_an_unknown_factor_or_word_is_told_with_what_is_near() -> None:
    ((factor, told),) = faults(kernl="rbf")
    assert factor == "kernl" and told.startswith("unknown factor `kernl`") and told.endswith("did you mean `kernel`?")
    ((_, told),) = faults(kernel="rfb")
    assert told.startswith("unknown kernel `rfb`") and told.endswith("hint: did you mean `rbf`?")
    ((_, told),) = faults(position="direct-sum+produkt")
    assert told.startswith("unknown position `produkt`")


def test_numbers_and_free_texts_are_not_checked() -> None:
    assert not faults(data__corpus="my-own", training__steps="7", clip="none", kernel="rbf", position="none")
    assert len(faults(a="1", b="2")) == 2


@pytest.mark.parametrize(
    ("factor", "axes"),
    [
        ("position", {"inject", "encoding"}),
        ("value", {"encoding"}),
        ("filter.decoder-self", set()),
        ("training.steps", set()),
    ],
)
def test_what_the_words_of_an_axis_take_is_read_from_their_definitions(factor: str, axes: set[str]) -> None:
    assert taken_axes(factor) == axes

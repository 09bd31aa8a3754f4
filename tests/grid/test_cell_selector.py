"""Cells selected by the names of their factors."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from kdx.grid.cell_selector import CellSelector, factors, unknown
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.spec import CellSpec

SELECTOR: TypeAdapter[dict[str, str]] = TypeAdapter(CellSelector)


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ({"kernel": "rbf"}, "rbf"),
        ({"training.steps": 100}, "100"),
        ({"position": ["product", "direct-sum"]}, "direct-sum+product"),
        ({"position": "product+direct-sum"}, "direct-sum+product"),
        ({"position": "own/scheme.py:Mine"}, "own/scheme.py:Mine"),
        ({"position": []}, "none"),
        ({"position": "none"}, "none"),
        ({"placement": ["decoder-self", "encoder-self"]}, "encoder-self/decoder-self"),
        ({"normaliser": None}, "none"),
        ({"training.betas": [0.9, 0.98]}, "0.9/0.98"),
    ],
)
def test_yaml_becomes_words_in_the_order_of_a_resolved_cell(written: dict[str, Any], word: str) -> None:
    assert list(SELECTOR.validate_python(written).values()) == [word]


@pytest.mark.parametrize("wrong", [["kernel"], "kernel", {"training": {"steps": 1}}])
def test_a_selector_that_is_no_mapping_to_words_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        SELECTOR.validate_python(wrong)


def test_every_field_of_a_cell_is_a_factor_except_the_selection() -> None:
    cell = CellSpec.model_validate({"task": "translation", "data": {"corpus": "synthetic"}})
    spec = ResolvedSpec.of(cell)
    assert {"task", "kernel", "filter.decoder-self", "data.corpus", "training.steps"} <= spec.words.keys()
    assert spec.words.keys() <= set(factors()) and not any(name.startswith("select") for name in factors())
    assert all(spec.word(factor) is not None for factor in factors())
    assert spec.word("clip") == "none" and "clip" not in spec.words, "an option that it lacks"


def faults(**where: str) -> list[tuple[str, str]]:
    return [(factor, str(fault)) for factor, fault in unknown({k.replace("__", "."): v for k, v in where.items()})]


def test_an_unknown_factor_or_name_is_reported_with_the_nearest() -> None:
    ((factor, message),) = faults(kernl="rbf")
    assert (factor, message.startswith("unknown factor `kernl`")) == ("kernl", True)
    assert "\n  hint: did you mean `kernel`?\n" in message
    ((_, message),) = faults(kernel="rfb")
    assert message.startswith("unknown kernel `rfb`\n  hint: did you mean `rbf`?\n")
    ((_, message),) = faults(position="direct-sum+produkt")
    assert message.startswith("unknown position `produkt`")


def test_numbers_and_free_texts_are_not_checked() -> None:
    assert not faults(data__corpus="my-own", training__steps="7", clip="none", kernel="rbf", position="none")
    assert len(faults(a="1", b="2")) == 2

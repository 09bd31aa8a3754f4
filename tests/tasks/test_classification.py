"""Text classification from end to end: own text, its faults, what a run measures, and that it resumes bit for bit."""

import pytest
from pydantic import ValidationError

from kdx.grid.spec import CellSpec


def cell(**fields) -> CellSpec:
    model = {"width": 16, "heads": 2, "encoder_layers": 1, "inner": 16, "dropout": 0.0}
    return CellSpec.model_validate(
        {"task": "classification", "data": {"corpus": "synthetic-order"}, "model": model, **fields}
    )


def test_pooling_is_the_mean_unless_said_otherwise_and_no_other_task_has_it():
    assert cell().option("pooling") == "mean" and '"pooling":"mean"' in cell().text
    assert cell(pooling="first").text != cell().text
    other = CellSpec.model_validate({"task": "prediction", "data": {"corpus": "any"}})
    assert other.option("pooling") is None and "pooling" not in other.text
    translation = CellSpec.model_validate({"task": "translation", "data": {"corpus": "any"}, "pooling": "first"})
    assert translation.option("pooling") is None
    with pytest.raises(ValidationError) as unknown:
        cell(pooling="last")
    assert unknown.value.errors()[0]["ctx"]["allowed"] == ("mean", "first")

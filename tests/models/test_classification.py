"""An encoder over a line, pooled."""

from itertools import product

import pytest
import torch
from pydantic import ValidationError

from kdx.data.vocabulary import BEGIN
from kdx.grid.spec import CellSpec
from kdx.models.classification import ClassificationModel


def cell(**fields) -> CellSpec:
    model = {"width": 16, "heads": 2, "encoder_layers": 1, "inner": 16, "dropout": 0.0}
    return CellSpec.model_validate(
        {"task": "classification", "data": {"corpus": "synthetic-order"}, "model": model, **fields}
    )


@pytest.mark.parametrize(("pooling", "position"), list(product(("mean", "first"), ("none", "product"))))
def test_padding_changes_nothing_and_order_counts_where_positions_are_known(pooling, position):
    torch.manual_seed(0)
    model = ClassificationModel(cell(pooling=pooling, position=position), 20, 3).double().eval()
    line = torch.tensor([[BEGIN, 5, 6, 7]])
    alone = model(line, line == 0)
    padded = torch.cat([line, torch.zeros(1, 3, dtype=torch.long)], 1)
    torch.testing.assert_close(model(padded, padded == 0), alone)
    turned = model(line[:, [0, 3, 2, 1]], line == 0)
    assert torch.allclose(turned, alone) is (position == "none")


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

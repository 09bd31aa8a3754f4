"""A cell settles what depends on another field, and refuses what cannot be."""

import pytest
from pydantic import ValidationError

from kdx.grid.spec import CellSpec
from kdx.vocabulary import Attention, Embeddings


def cell(task: str = "translation", **settings) -> CellSpec:
    if task == "prediction":
        settings = {"training": {"batch_tokens": 1280}, **settings}
    return CellSpec.model_validate({"task": task, "data": {"corpus": "text"}, **settings})


def refusal(task: str = "translation", **settings) -> dict:
    with pytest.raises(ValidationError) as caught:
        cell(task, **settings)
    (detail,) = caught.value.errors()
    return detail


def test_prediction_has_a_decoder_only():
    spec = cell("prediction", position="product", placement=["encoder-self", "decoder-self"])
    assert spec.placement == (Attention.DECODER_SELF,)
    assert (spec.model.encoder_layers, spec.model.embeddings) == (0, Embeddings.TIED)
    assert spec.training.length == 128


def test_a_cell_does_not_change():
    with pytest.raises(ValidationError):
        cell().kernel = "rbf"

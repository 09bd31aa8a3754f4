"""Weights under the names of before are those of today; nothing else is renamed."""

import torch

from kdx.attention.mixers.equivariant import Equivariant
from kdx.grid.spec import CellSpec
from kdx.models.former_names import todays_names
from kdx.models.translation import TranslationModel

CELL = {
    "task": "translation",
    "data": {"corpus": "text"},
    "position": "lookup",
    "model": {"width": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "inner": 16},
}


def test_former_names_of_a_layers_attentions_are_todays() -> None:
    former = {
        "model.encoder.layers.0.own.query.weight": 1,
        "decoder.layers.11.own_residual.norm.bias": 2,
        "decoder.layers.1.across.positions.lookup.table.weight": 3,
        "decoder.layers.1.across_residual.norm.weight": 4,
        "encoder.layers.0.own_residuals.audio.norm.weight": 5,
        "encoder.layers.0.own.own.weight": 6,  # of the equivariant mixer
        "encoder.own.weight": 7,
    }
    assert todays_names(former) == {
        "model.encoder.layers.0.self_attention.query.weight": 1,
        "decoder.layers.11.self_attention_residual.norm.bias": 2,
        "decoder.layers.1.cross_attention.positions.lookup.table.weight": 3,
        "decoder.layers.1.cross_attention_residual.norm.weight": 4,
        "encoder.layers.0.self_attention_residuals.audio.norm.weight": 5,
        "encoder.layers.0.self_attention.own.weight": 6,
        "encoder.own.weight": 7,
    }


def test_names_of_today_stay() -> None:
    model = TranslationModel(CellSpec.model_validate(CELL), 20)
    mixed = TranslationModel(CellSpec.model_validate({**CELL, "mixer": "equivariant"}), 20)
    assert any(isinstance(module, Equivariant) for module in mixed.modules())
    for state in (model.state_dict(), mixed.state_dict()):
        assert list(todays_names(state)) == list(state)
        assert all(torch.equal(todays_names(state)[name], value) for name, value in state.items())

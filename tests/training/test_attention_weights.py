"""Whoever watches a model sees each attention's weights once, and changes nothing."""

import pytest
import torch

from kdx.grid.spec import CellSpec
from kdx.models.translation import TranslationModel
from kdx.training.attention_weights import watched

CELL = {
    "task": "translation",
    "data": {"corpus": "text"},
    "model": {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "inner": 16, "dropout": 0.0},
}


@pytest.fixture
def model() -> TranslationModel:
    torch.manual_seed(0)
    return TranslationModel(CellSpec.model_validate(CELL), 20).eval()


@pytest.fixture
def inputs() -> tuple[torch.Tensor, ...]:
    tokens = torch.randint(4, 20, (3, 5), generator=torch.Generator().manual_seed(1))
    return tokens, torch.zeros(3, 5, dtype=torch.bool), tokens[:, :4]


def test_each_attention_is_seen_once_with_rows_that_sum_to_one(model, inputs):
    seen = {}
    unwatched = model(*inputs)
    with watched(model, lambda name, weights, asked: seen.setdefault(name, []).append((weights, asked))):
        output = model(*inputs)
    assert torch.equal(output, unwatched)
    shapes = {name: [tuple(weights.shape) for weights, _ in those] for name, those in seen.items()}
    assert sorted(shapes.values()) == [[(3, 2, 4, 4)], [(3, 2, 4, 5)], [(3, 2, 5, 5)]]
    for those in seen.values():
        weights, asked = those[0]
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        assert not weights.requires_grad and asked.arguments[0].shape[1] == weights.shape[2]


def test_nobody_watches_afterwards_not_even_after_an_error(model, inputs):
    seen = []
    with pytest.raises(ZeroDivisionError), watched(model, lambda *what: seen.append(what)):
        raise ZeroDivisionError
    model(*inputs)
    assert not seen

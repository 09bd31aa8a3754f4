"""Whoever watches a model sees each attention's weights once, with their entropy, and changes nothing."""

import math

import pytest
import torch

from kdx.grid.spec import CellSpec
from kdx.models.language import LanguageModel
from kdx.models.translation import TranslationModel
from kdx.training.attention_weights import entropies, watched

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
    with watched(model, lambda name, weights, _: seen.setdefault(name, []).append(weights)):
        output = model(*inputs)
    assert torch.equal(output, unwatched)
    shapes = {name: [tuple(weights.shape) for weights in calls] for name, calls in seen.items()}
    assert sorted(shapes.values()) == [[(3, 2, 4, 4)], [(3, 2, 4, 5)], [(3, 2, 5, 5)]]
    for (weights,) in seen.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        assert not weights.requires_grad


def test_nobody_watches_afterwards_not_even_after_an_error(model, inputs):
    seen = []
    with pytest.raises(ZeroDivisionError), watched(model, lambda *what: seen.append(what)):
        raise ZeroDivisionError
    model(*inputs)
    assert not seen


MODEL = {"width": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "inner": 16, "dropout": 0.0}


def cell(task: str, **settings) -> CellSpec:
    return CellSpec.model_validate({"task": task, "data": {"corpus": "text"}, "model": MODEL, **settings})


def blind(model: torch.nn.Module) -> torch.nn.Module:
    """Queries of zero see all keys alike."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".query." in name:
                parameter.zero_()
    return model


def test_attention_that_sees_all_alike_has_the_entropy_of_the_number_of_keys():
    model = blind(TranslationModel(cell("translation"), 20))
    source, target = torch.randint(4, 20, (2, 7)), torch.randint(4, 20, (2, 5))
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[1, 4:] = True
    with torch.no_grad(), entropies(model) as means:
        model(source, padding, target)
    expected = {
        # Seven keys for seven queries, and four for four; what is padding is not asked.
        "encoder-self": (7 * math.log(7) + 4 * math.log(4)) / 11,
        "encoder-decoder": (math.log(7) + math.log(4)) / 2,
        "decoder-self": sum(math.log(seen) for seen in range(1, 6)) / 5,
    }
    assert means == pytest.approx(expected, rel=1e-5)


def test_a_model_without_attention_has_none():
    with entropies(LanguageModel(cell("prediction", mixer="equivariant"), 20)) as means:
        pass
    assert means == {}

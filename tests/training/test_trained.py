"""A model from its cell and its weights, whatever vocabularies it has."""

import io

import pytest
import torch
from runs import cell

from kdx.errors import KdxError
from kdx.models.language import LanguageModel
from kdx.models.translation import TranslationModel
from kdx.training.trained import Trained, model_of


def saved(model: torch.nn.Module) -> bytes:
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.getvalue()


SEPARATE = {"embeddings": "separate"}


@pytest.mark.parametrize(
    ("spec", "make"),
    [
        (cell("translation", select=None), lambda spec: TranslationModel(spec, 20)),
        (cell("translation", select=None, model=SEPARATE), lambda spec: TranslationModel(spec, 20, 30)),
        (cell("prediction", select=None), lambda spec: LanguageModel(spec, 20)),
        (cell("prediction", select=None, model={"cutoffs": [8]}), lambda spec: LanguageModel(spec, 20)),
    ],
    ids=["translation", "separate", "prediction", "adaptive"],
)
def test_a_model_comes_back_with_the_same_bits(spec, make):
    model = make(spec)
    again = model_of(spec, saved(model))
    assert not again.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


@pytest.mark.parametrize("other", [torch.nn.Linear(2, 2), TranslationModel(cell("translation", select=None), 20)])
def test_weights_of_another_model_are_refused(other):
    with pytest.raises(KdxError, match="these weights are of another model than this kdx builds of the cell"):
        model_of(cell("prediction", select=None), saved(other))


def test_attention_is_what_the_module_itself_says():
    spec = cell("prediction", select=None)
    model = LanguageModel(spec, 20).eval()
    tokens = torch.randint(4, 20, (2, 6))
    ((name, weights),) = Trained(spec, model, None).attention(tokens).items()
    module = model.get_submodule(name)
    with torch.no_grad():
        assert torch.equal(weights, module.weights(model.input(tokens)))
    assert weights.shape == (2, 2, 6, 6)
    assert not module._forward_pre_hooks

"""A model from its cell and its weights, whatever vocabularies it has."""

import io
import os
import pickle
from pathlib import Path

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


FILE = Path("best-000000001.ckpt")
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
    again = model_of(spec, saved(model), FILE)
    assert not again.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


@pytest.mark.parametrize("other", [torch.nn.Linear(2, 2), TranslationModel(cell("translation", select=None), 20)])
def test_weights_of_another_model_are_refused(other):
    with pytest.raises(
        KdxError, match="these weights are of another model than this kdx builds of the cell"
    ) as refused:
        model_of(cell("prediction", select=None), saved(other), FILE)
    assert refused.value.place == str(FILE)


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("planted",)


def packed(state) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"of another program", pickle.dumps(Hostile()), packed({"input.embedding.weight": Hostile()}), packed([1])],
    ids=["empty", "text", "pickle", "pickle in weights", "list"],
)
def test_a_file_that_holds_no_weights_is_refused_by_name_and_runs_nothing(content, tmp_path, monkeypatch, figure):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KdxError, match="holds no weights that kdx wrote, and nothing in it was run") as refused:
        model_of(cell("prediction", select=None), content, FILE)
    assert refused.value.place == str(FILE) and refused.value.hint
    assert not (tmp_path / "planted").exists()
    figure(f"{len(content)} bytes: {refused.value.problem}")


@pytest.mark.parametrize("weights", [{"input.embedding.weight": 3}, {"input.embedding.weight": None}, {}])
def test_what_is_no_tensor_is_of_another_model(weights):
    with pytest.raises(KdxError, match="of another model"):
        model_of(cell("prediction", select=None), packed(weights), FILE)


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

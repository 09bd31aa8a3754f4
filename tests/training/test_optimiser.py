"""Each optimiser is its formula, and has the parameters that it is for."""

import copy
import io

import pytest
import torch
from runs import cell
from torch import Tensor, nn

from kdx.grid.sections import Training
from kdx.grid.spec import CellSpec
from kdx.models.language import LanguageModel
from kdx.models.multimodal import MultimodalModel
from kdx.models.set import SetModel
from kdx.models.tour import TourModel
from kdx.models.translation import TranslationModel
from kdx.training.module import TaskModule
from kdx.training.optimiser import Together, hidden_matrices, optimiser_of
from kdx.vocabulary import Optimiser


class Small(nn.Module):
    """An embedding, a layer with a matrix and a bias, and an output."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 6)])
        self.output = nn.Linear(6, 5)


def drawn(model: nn.Module, seed: int) -> None:
    """A gradient for every parameter."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


def test_lion_is_its_formula():
    """Algorithm 2 of Chen et al. 2023, in float64."""
    training = Training(optimiser="lion", learning_rate=0.1, betas=(0.8, 0.9), weight_decay=0.5)
    model = Small().double()
    optimizer = optimiser_of(model, training)
    wanted = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    mean = {name: torch.zeros_like(one) for name, one in wanted.items()}
    for step in range(3):
        drawn(model, step)
        for name, parameter in model.named_parameters():
            sign = (0.8 * mean[name] + 0.2 * parameter.grad).sign()
            wanted[name] = wanted[name] - 0.1 * (sign + 0.5 * wanted[name])
            mean[name] = 0.9 * mean[name] + 0.1 * parameter.grad
        optimizer.step()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), wanted[name])


def orthogonal(matrix: Tensor) -> Tensor:
    """U Vᵀ of its singular vectors, which Muon's iteration comes near."""
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    return left @ right


def test_muon_turns_the_gradients_of_a_layer_into_orthogonal_steps_and_leaves_the_rest_to_adamw():
    training = Training(optimiser="muon", learning_rate=0.1, weight_decay=0.5, momentum=0.9)
    model = Small()
    other = copy.deepcopy(model)
    before = model.layers[0].weight.detach().clone()
    for one, settings in ((model, training), (other, training.model_copy(update={"optimiser": Optimiser.ADAMW}))):
        drawn(one, 0)
        optimiser_of(one, settings).step()
    for (name, parameter), adamw in zip(model.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(parameter, adamw) is (name != "layers.0.weight"), name
    # The first step's momentum is along the gradient; 0.2 √max(6, 4) makes it as large as a step of AdamW.
    step = (before * (1 - 0.1 * 0.5) - model.layers[0].weight.detach()) / (0.1 * 0.2 * 6**0.5)
    wanted = orthogonal(model.layers[0].weight.grad)
    assert torch.cosine_similarity(step.flatten(), wanted.flatten(), dim=0) > 0.95
    assert 0.5 < torch.linalg.matrix_norm(step, 2) < 1.5


MODELS = {
    "prediction": lambda spec: LanguageModel(spec, 11),
    "translation": lambda spec: TranslationModel(spec, 11),
    "set": SetModel,
    "tour": TourModel,
    "multimodal": MultimodalModel,
}


@pytest.mark.parametrize(
    ("task", "axes", "others"),
    [
        ("prediction", {}, {"input.embedding.weight"}),
        ("prediction", {"position": "relative"}, {"input.embedding.weight"}),
        ("prediction", {"position": ["lookup", "t5"]}, {"input.embedding.weight"}),
        ("prediction", {"model": {"embeddings": "separate"}}, {"input.embedding.weight", "output.weight"}),
        ("prediction", {"mixer": "equivariant"}, {"input.embedding.weight"}),
        ("translation", {"position": "product"}, {"source_input.embedding.weight"}),
        ("set", {}, {"input.weight", "output.weight"}),
        ("tour", {}, {"input.weight", "leaves.weight", "enters.weight"}),
        (
            "multimodal",
            {"space": "crossmodal"},
            {"words.weight", "frames.vision.weight", "frames.audio.weight", "output.weight"},
        ),
    ],
)
def test_the_hidden_matrices_are_those_of_the_layers(task, axes, others):
    size = {"width": 24, "heads": 2, "inner": 16} | axes.pop("model", {})
    fields = {"task": task, "data": {"corpus": "any"}, "model": size, **axes}
    model = MODELS[task](CellSpec.model_validate(fields))
    hidden = {id(matrix) for matrix in hidden_matrices(model)}
    assert len(hidden) == len(hidden_matrices(model))
    tables = {
        name
        for name, parameter in model.named_parameters()
        if parameter.dim() == 2 and id(parameter) not in hidden and not name.endswith((".u", ".v"))
    }
    # T5's biases are a table as well.
    assert {name for name in tables if "positions.t5" not in name} == others
    inside = {name for name, parameter in model.named_parameters() if id(parameter) in hidden}
    assert any("feed_forward" in name for name in inside)
    assert ("equivariant" in axes.values()) or any("attention" in name for name in inside)


def stepped(module: TaskModule, made: dict, steps: range) -> None:
    optimizer, scheduler = made["optimizer"], made["lr_scheduler"]["scheduler"]
    for step in steps:
        drawn(module.model, step)
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize("optimiser", Optimiser)
def test_an_optimiser_goes_on_from_its_state_with_the_same_bits(optimiser):
    spec = cell("prediction", optimiser=optimiser, weight_decay=0.1)
    torch.manual_seed(0)
    module = TaskModule(spec, Small())
    made = module.configure_optimizers()
    stepped(module, made, range(3))
    kept = io.BytesIO()
    states = {"optimizer": made["optimizer"].state_dict(), "scheduler": made["lr_scheduler"]["scheduler"].state_dict()}
    torch.save({"model": module.model.state_dict(), **states}, kept)
    stepped(module, made, range(3, 6))
    kept.seek(0)
    state = torch.load(kept, weights_only=True)
    again = TaskModule(spec, Small())
    remade = again.configure_optimizers()
    again.model.load_state_dict(state["model"])
    remade["optimizer"].load_state_dict(state["optimizer"])
    remade["lr_scheduler"]["scheduler"].load_state_dict(state["scheduler"])
    stepped(again, remade, range(3, 6))
    for one, other in zip(module.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_schedule_sets_the_rate_of_all_optimisers_also_after_a_state_was_loaded():
    optimizer = optimiser_of(Small(), Training(optimiser="muon"))
    assert isinstance(optimizer, Together)
    optimizer.load_state_dict(optimizer.state_dict())
    for group in optimizer.param_groups:
        group["lr"] = 0.5
    assert [group["lr"] for optimiser in optimizer.optimisers for group in optimiser.param_groups] == [0.5, 0.5]

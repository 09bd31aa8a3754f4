"""The decoder-only model sees what came before, and nothing else."""

import pytest
import torch
from cells import EVERY, OF_A_KERNEL, VOCABULARY, cell, count, language, tokens
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from kdx.attention.kernels import KERNELS
from kdx.grid import shipped
from kdx.grid.load import load_grid
from kdx.models.language import LanguageModel

# Rounding of double precision alone.
EXACT = {"rtol": 0.0, "atol": 1e-12}


@pytest.mark.parametrize("kernel", KERNELS)
@each("name", OF_A_KERNEL)
def test_every_combination_has_finite_loss_and_gradients_everywhere(kernel, name):
    model = LanguageModel(cell("prediction", kernel=kernel, **OF_A_KERNEL[name]), VOCABULARY)
    text = tokens(2, 9)
    loss = functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    loss.backward()
    assert torch.isfinite(loss)
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), parameter_name


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(EVERY)), st.sampled_from(["post", "pre"]), st.integers(1, 7), st.integers(0, 9))
def test_a_later_token_changes_no_earlier_logit(name, norm, changed, seed):
    model = language(norm=norm, seed=seed, **EVERY[name])
    text = tokens(2, 8, seed=seed)
    other = text.clone()
    other[:, changed] = torch.where(text[:, changed] == 4, 5, 4)
    before, after = model(text), model(other)
    torch.testing.assert_close(before[:, :changed], after[:, :changed], **EXACT)
    assert not torch.allclose(before[:, changed], after[:, changed])


@pytest.mark.parametrize("kernel", ["exponential", "rbf"])
@pytest.mark.parametrize("symmetry", ["asymmetric", "symmetric"])
def test_one_causal_layer_without_position_is_blind_to_the_order_of_its_prefix_and_two_are_not(kernel, symmetry):
    text = tokens(3, 8, seed=1)
    shuffled = torch.cat([text[:, [4, 2, 6, 0, 1, 5, 3]], text[:, 7:]], dim=1)

    def last(layers: int) -> tuple[torch.Tensor, torch.Tensor]:
        model = language({"decoder_layers": layers}, kernel=kernel, symmetry=symmetry)
        return model(text)[:, -1], model(shuffled)[:, -1]

    torch.testing.assert_close(*last(layers=1), **EXACT)
    assert (torch.sub(*last(layers=2)).abs().amax(-1) > 1e-3).all()


def test_the_base_model_of_transformer_xl_has_the_published_number_of_parameters():
    (run,) = load_grid("presets/prediction-paper").runs
    with torch.device("meta"):
        model, own = (LanguageModel(run.cell.spec, size) for size in (267_735, 267_735 + 2))
    assert count(model) == 151_107_538
    # What kdx makes of the text has padding and begin beside, as the preset says.
    assert count(own) == 151_108_360 == count(model) + 822
    told = shipped.find("presets/prediction-paper").read_text()
    assert all(f"{number:,}" in told for number in (count(model), count(own), 822))
    # Without embeddings, softmax, and the u and v that all layers share.
    assert count(model.decoder) - 2 * 410 == 41_066_400


CLUSTERS = {"embeddings": "tied", "cutoffs": [5, 8]}


def test_with_an_adaptive_softmax_a_model_gives_log_probabilities_and_learns_everywhere():
    model = language(CLUSTERS)
    text = tokens(2, 9)
    torch.testing.assert_close(model(text).exp().sum(-1), torch.ones(2, 9, dtype=torch.float64), **EXACT)
    nats = model.output.nats(model.hidden(text[:, :-1]), text[:, 1:])
    wanted = functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten(), reduction="none")
    torch.testing.assert_close(nats, wanted, **EXACT)
    nats.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert model.output.weight is model.input.embedding.weight


def test_what_the_last_layer_gives_to_the_softmax_can_be_dropped():
    model = LanguageModel(cell("prediction", {"output_dropout": 0.5}), VOCABULARY)
    text = tokens(4, 50)
    whole = model.eval().hidden(text)
    dropped = model.train().hidden(text)
    gone = dropped == 0
    assert gone.double().mean() == pytest.approx(0.5, abs=0.05)
    torch.testing.assert_close(dropped[~gone], 2 * whole[~gone])

"""The encoder–decoder model: what it sees, what it shares, and how it translates."""

import pytest
import torch
from cells import EVERY, OF_A_KERNEL, SMALL, VOCABULARY, WIDTH, cell, count, layer_size, padded, tokens, translation
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from searches import reference
from torch import Tensor
from torch.nn import functional

from kdx.attention.kernels import KERNELS
from kdx.attention.positions import POSITIONS
from kdx.data.vocabulary import BEGIN, END, PADDING
from kdx.grid.load import load_grid
from kdx.grid.shipped import names
from kdx.grid.spec import CellSpec
from kdx.models import beam, transformer
from kdx.models import translation as translating
from kdx.models.beam import Search
from kdx.models.translation import TranslationModel

EXACT = {"rtol": 0.0, "atol": 1e-12}


def seen(batch: Tensor) -> tuple[Tensor, Tensor]:
    return batch, batch == PADDING


@pytest.mark.parametrize("kernel", KERNELS)
@each("name", OF_A_KERNEL)
def test_every_combination_has_finite_loss_and_gradients_everywhere(kernel, name):
    model = TranslationModel(cell("translation", kernel=kernel, **OF_A_KERNEL[name]), VOCABULARY)
    source = padded([tokens(6), tokens(3, seed=1)])
    target = tokens(2, 6, seed=2)
    logits = model(*source, target[:, :-1])
    loss = functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
    loss.backward()
    assert torch.isfinite(loss)
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), parameter_name


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(EVERY)), st.sampled_from(["post", "pre"]), st.integers(1, 5), st.integers(0, 9))
def test_a_later_target_token_changes_no_earlier_logit_and_any_source_token_changes_all(name, norm, changed, seed):
    model = translation(norm=norm, seed=seed, **EVERY[name])
    source, target = tokens(2, 5, seed=seed), tokens(2, 6, seed=seed + 1)
    other, other_source = target.clone(), source.clone()
    other[:, changed] = torch.where(target[:, changed] == 4, 5, 4)
    other_source[:, -1] = torch.where(source[:, -1] == 4, 5, 4)
    before, after = model(*seen(source), target), model(*seen(source), other)
    torch.testing.assert_close(before[:, :changed], after[:, :changed], **EXACT)
    assert not torch.allclose(before[:, changed], after[:, changed])
    everywhere = (model(*seen(other_source), target) - before).abs().amax(-1)
    assert (everywhere > 1e-9).all()


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(EVERY)), st.lists(st.integers(1, 9), min_size=2, max_size=4), st.integers(0, 4))
def test_padding_of_the_source_changes_nothing(name, lengths, seed):
    model = translation(seed=seed, **EVERY[name])
    sentences = [tokens(length, seed=seed + place) for place, length in enumerate(lengths)]
    target = tokens(len(lengths), 4, seed=seed)
    together = model(*padded(sentences), target)
    for row, sentence in enumerate(sentences):
        torch.testing.assert_close(together[row], model(*seen(sentence[None]), target[row : row + 1])[0], **EXACT)


def without_cache(model: TranslationModel, sentence: Tensor, search: Search) -> list[int]:
    """Translate by the reference search, computing the whole model anew for each hypothesis."""

    def logits(target: list[int]) -> Tensor:
        return model(*seen(sentence[None]), torch.tensor([[BEGIN, *target]]))[0, -1]

    return reference(logits, int(search.limits(torch.tensor(len(sentence)))), search)


FAMILIES = {
    **{kernel: {"kernel": kernel, "position": "product"} for kernel in KERNELS},
    "at none": {"position": "none"},
    **{
        f"at {known.word}": {"position": known.word} | ({"placement": "decoder-self"} if known.past_only else {})
        for known in POSITIONS.definitions()
    },
    "per layer, t in values": {"position": "direct-sum", "inject": "per-layer", "value": "with-position"},
    "learned": {"position": "direct-sum", "encoding": "learned"},
    "table": {"position": "lookup", "value": "table"},
    "all distances": {"position": "lookup", "clip": "none"},
    "symmetric": {"symmetry": "symmetric", "position": ["direct-sum", "relative"], "inject": "per-layer"},
    "strided": {"filter": {"decoder-self": "strided"}, "stride": 2},
    "fixed": {"filter": {"decoder-self": "fixed"}, "stride": 3, "summary": 1},
    "equivariant": {"mixer": "equivariant", "position": "direct-sum"},
    "convolution": {"mixer": "convolution", "position": "direct-sum", "neighbours": 2},
}


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("name", FAMILIES)
def test_a_beam_finds_with_its_cache_and_in_a_batch_what_it_finds_without(name):
    sentences = [tokens(length, seed=length) for length in (7, 1, 4)]
    search = Search(beam=3, length_penalty=2.0, longest=(0.5, 3))
    lengths = set()
    for seed in (3, 4):
        model = translation({"embeddings": "separate"}, seed=seed, **FAMILIES[name])
        result = model.translate(*padded(sentences), search)
        assert result == [without_cache(model, sentence, search) for sentence in sentences]
        lengths |= set(map(len, result))
    assert max(lengths) > 2


def shipped() -> dict[str, CellSpec]:
    """The shipped cells of translation that differ in more than size, text and training, made small."""
    result = {}
    for grid in names():
        for run in load_grid(grid).runs:
            fields = run.cell.spec.model_dump(mode="json", by_alias=True)
            if fields["task"] == "translation":
                small = {"model": SMALL | {"embeddings": "separate"}, "data": {"corpus": "any"}}
                spec = CellSpec.model_validate(fields | small | {"training": {}, "evaluation": {}})
                result.setdefault(spec, f"{grid} {run.cell.ordinal}")
    return {name: spec for spec, name in result.items()}


SHIPPED = shipped()


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("name", SHIPPED)
def test_a_beam_translates_every_shipped_cell(name):
    torch.manual_seed(3)
    model = TranslationModel(SHIPPED[name], VOCABULARY).double().eval()
    sentences = [tokens(length, seed=length) for length in (5, 2)]
    search = Search(beam=2, length_penalty=2.0, longest=(1.0, 1))
    assert model.translate(*padded(sentences), search) == [
        without_cache(model, sentence, search) for sentence in sentences
    ]


@torch.no_grad()
@pytest.mark.parametrize("decoded", [1, 30, 10**6], ids=["alone", "groups", "together"])
def test_the_size_of_a_group_changes_no_translation(decoded, monkeypatch):
    model = translation({"embeddings": "separate"}, position="product", seed=3)
    sentences = [tokens(length, seed=length) for length in (7, 1, 4, 9, 4, 2)]
    search = Search(beam=2, longest=(1.0, 2))
    monkeypatch.setattr(translating, "DECODED", decoded)
    alone = [model.translate(*seen(sentence[None]), search)[0] for sentence in sentences]
    assert model.translate(*padded(sentences), search) == alone
    assert len(set(map(len, alone))) > 2


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(1, 100))
def test_groups_hold_each_sentence_once_and_no_more_tokens_than_allowed(lengths, allowed):
    groups = translating._groups(torch.tensor(lengths), allowed)
    assert sorted(place for group in groups for place in group.tolist()) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[place] for place in group.tolist()) <= allowed
    if len(lengths) * max(lengths) <= allowed:
        assert [group.tolist() for group in groups] == [list(range(len(lengths)))]


@torch.no_grad()
def test_translations_end_where_learned_positions_do(monkeypatch):
    monkeypatch.setattr(transformer, "MAX_POSITIONS", 6)
    monkeypatch.setattr(beam, "MAX_POSITIONS", 6)
    for axes in ({"position": "direct-sum", "encoding": "learned"}, {"position": "lookup", "clip": "none"}):
        model = translation({"embeddings": "separate"}, **axes)
        model.output.weight[END] *= 0.0
        model.output.weight[END, 0] = -1e4
        model.decoder.layers[-1].feed_residual.norm.bias[0] = 1e2
        for width in (1, 3):
            assert len(model.translate(*seen(tokens(1, 3)), Search(width, longest=(2.0, 10)))[0]) == 5


@pytest.mark.parametrize(("embeddings", "matrices"), [("shared", 1), ("tied", 2), ("separate", 3)])
def test_the_three_embeddings_are_one_two_or_three_matrices(embeddings, matrices):
    model = translation({"embeddings": embeddings})
    source, target, output = model.source_input.embedding, model.target_input.embedding, model.output
    assert len({id(part.weight) for part in (source, target, output)}) == matrices
    assert (source.weight is target.weight) is (embeddings == "shared")
    assert (output.weight is target.weight) is (embeddings != "separate")
    assert count(model) == matrices * VOCABULARY * WIDTH + 2 * layer_size() + 2 * layer_size(attentions=2)


@pytest.mark.parametrize(("embeddings", "parameters"), [("tied", 39_469_056), ("separate", 42_864_640)])
def test_parameters_are_as_many_as_published(embeddings, parameters):
    """fairseq's `transformer_iwslt_de_en` with its dictionaries of IWSLT'14, 8,848 and 6,632 tokens."""
    size = {"width": 512, "heads": 4, "encoder_layers": 6, "decoder_layers": 6, "inner": 1024}
    with torch.device("meta"):
        spec = cell("translation", {**size, "embeddings": embeddings}, position="direct-sum")
        assert count(TranslationModel(spec, 6_632, source_size=8_848)) == parameters

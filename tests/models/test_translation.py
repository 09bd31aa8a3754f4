"""The encoder–decoder model: what it sees, what it shares, and how it translates."""

import pytest
import torch
from cells import EVERY, VOCABULARY, WIDTH, cell, count, layer_size, padded, tokens, translation
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from kdx.data.vocabulary import BEGIN, END, PADDING
from kdx.models.translation import TranslationModel

EXACT = {"rtol": 0.0, "atol": 1e-12}


def seen(batch: Tensor) -> tuple[Tensor, Tensor]:
    return batch, batch == PADDING


@pytest.mark.parametrize("name", EVERY)
def test_every_combination_has_finite_loss_and_gradients_everywhere(name):
    model = TranslationModel(cell("translation", **EVERY[name]), VOCABULARY)
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


def greedy(model: TranslationModel, sentence: Tensor, longest: int) -> list[int]:
    """One sentence, the whole model anew for each word."""
    target = [BEGIN]
    while len(target) <= longest:
        logits = model(*seen(sentence[None]), torch.tensor([target]))[0, -1]
        allowed = [token for token in range(VOCABULARY) if token not in (PADDING, BEGIN)]
        best = max(allowed, key=lambda token: logits[token].item())
        if best == END:
            break
        target.append(best)
    return target[1:]


@torch.no_grad()
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("name", [name for name in EVERY if name.startswith(("exponential, asym", "rbf, sym"))])
def test_translations_are_those_of_greedy_decoding_without_a_cache(name, norm):
    # Tied, an untrained model repeats its last token for ever.
    model = translation({"embeddings": "separate"}, norm=norm, seed=3, **EVERY[name])
    sentences = [tokens(length, seed=length) for length in (7, 1, 4, 5)]
    expected = [greedy(model, sentence, longest=7) for sentence in sentences]
    assert model.translate(*padded(sentences), longest=7) == expected


@torch.no_grad()
def test_sentences_may_end_at_different_times_at_once_and_never():
    lengths = []
    for seed in range(20):
        model = translation({"embeddings": "separate"}, position="product", seed=seed)
        sentences = [tokens(length, seed=length) for length in (7, 1, 4, 5, 9, 2)]
        translated = model.translate(*padded(sentences), longest=6)
        assert translated == [greedy(model, sentence, longest=6) for sentence in sentences]
        lengths.append(tuple(map(len, translated)))
    assert any(0 in batch and 6 in batch for batch in lengths)
    assert any(len(set(batch)) >= 3 for batch in lengths)
    assert any(max(batch) < 6 for batch in lengths)


def test_padding_and_begin_are_never_translations():
    model = translation({"embeddings": "separate"})
    with torch.no_grad():
        model.output.weight.zero_()  # every token is as likely, and the first ones would win
    assert model.translate(*padded([tokens(3)]), longest=5) == [[]]
    assert [PADDING, BEGIN, END] == [0, 1, 2]


@pytest.mark.parametrize(("embeddings", "matrices"), [("shared", 1), ("tied", 2), ("separate", 3)])
def test_the_three_embeddings_are_one_two_or_three_matrices(embeddings, matrices):
    model = translation({"embeddings": embeddings})
    source, target, output = model.source_input.embedding, model.target_input.embedding, model.output
    assert len({id(part.weight) for part in (source, target, output)}) == matrices
    assert (source.weight is target.weight) is (embeddings == "shared")
    assert (output.weight is target.weight) is (embeddings != "separate")
    assert count(model) == matrices * VOCABULARY * WIDTH + 2 * layer_size() + 2 * layer_size(attentions=2)


@pytest.mark.parametrize("embeddings", ["tied", "separate"])
def test_separate_dictionaries_have_embeddings_of_their_own_sizes(embeddings):
    model = TranslationModel(cell("translation", {"embeddings": embeddings}), VOCABULARY, source_size=17)
    sizes = [part.weight.shape[0] for part in (model.source_input.embedding, model.target_input.embedding)]
    assert sizes == [17, VOCABULARY]
    source = torch.tensor([[16, 4, 12]])
    assert model(*seen(source), tokens(1, 5)).shape == (1, 5, VOCABULARY)
    assert (model.output.weight is model.target_input.embedding.weight) is (embeddings == "tied")


def test_another_source_vocabulary_changes_nothing_of_the_initialisation():
    torch.manual_seed(0)
    one = TranslationModel(cell("translation", {"embeddings": "tied"}), VOCABULARY)
    torch.manual_seed(0)
    other = TranslationModel(cell("translation", {"embeddings": "tied"}), VOCABULARY, source_size=VOCABULARY)
    for weight, same in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(weight, same)


@pytest.mark.parametrize(("embeddings", "parameters"), [("tied", 39_469_056), ("separate", 42_864_640)])
def test_parameters_are_as_many_as_published(embeddings, parameters):
    """fairseq's `transformer_iwslt_de_en` with its dictionaries of IWSLT'14, 8,848 and 6,632 tokens."""
    size = {"width": 512, "heads": 4, "encoder_layers": 6, "decoder_layers": 6, "inner": 1024}
    with torch.device("meta"):
        spec = cell("translation", {**size, "embeddings": embeddings}, position="direct-sum")
        assert count(TranslationModel(spec, 6_632, source_size=8_848)) == parameters


def test_weights_that_were_kept_give_the_same_logits(tmp_path):
    axes = {"position": "direct-sum", "encoding": "learned", "norm": "pre"}
    model, other = translation(seed=0, **axes), translation(seed=1, **axes)
    torch.save(model.state_dict(), tmp_path / "weights")
    other.load_state_dict(torch.load(tmp_path / "weights", weights_only=True))
    source, target = seen(tokens(2, 5)), tokens(2, 4)
    assert torch.equal(model(*source, target), other(*source, target))
    assert other.output.weight is other.source_input.embedding.weight

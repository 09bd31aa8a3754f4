"""Prediction is scored on every token of a text once, per token and per word."""

import dataclasses
import math
from collections import Counter

import pytest
import torch
from runs import cell, run, same_bits

from kdx.data.batching import StreamBatches
from kdx.data.reading import longest_context
from kdx.data.stream import StreamCorpus, load_stream
from kdx.data.vocabulary import PADDING
from kdx.errors import KdxError
from kdx.grid.spec import CellSpec
from kdx.models.language import LanguageModel
from kdx.tasks.difficulty import slice_name
from kdx.training.prediction import PredictionModule
from kdx.vocabulary import Split


@pytest.fixture(scope="module")
def corpus(home) -> StreamCorpus:
    return load_stream(cell("prediction").data, home)


def xl(**axes) -> CellSpec:
    """Return a cell like Transformer-XL, with one layer."""
    base = cell("prediction").model_dump(exclude={"position", "placement", "encoding", "select"}, by_alias=True)
    base["model"] |= axes.pop("model", {})
    return CellSpec.model_validate(base | {"position": "relative", "xl_bias": "shared", "memory": 8} | axes)


def evaluated(module: PredictionModule, split: Split, streams: int = 16) -> dict[str, float]:
    module.eval()
    module._start()
    with torch.no_grad():
        for batch in StreamBatches(module.corpus.splits[split], streams, 16).in_order():
            module.evaluate(batch, split)
    return module.summarise(split)


@pytest.mark.parametrize("streams", [1, 7, 16])
def test_every_token_of_the_text_is_scored_once_so_its_bytes_are_what_was_read(corpus, streams):
    module = PredictionModule(cell("prediction"), corpus)
    with torch.no_grad():
        module.model.output.weight.zero_()
    metrics = evaluated(module, Split.VALID, streams)
    assert module._targets == len(corpus.splits[Split.VALID])
    assert metrics["perplexity"] == pytest.approx(corpus.vocabulary.size, rel=1e-5)
    facts, tokens = corpus.facts, module._targets
    assert tokens == facts["valid/tokens"] == corpus.words[Split.VALID]
    code = tokens * math.log(corpus.vocabulary.size) + facts["valid/spelling_nats"]
    assert metrics["bits_per_byte"] == pytest.approx(code / math.log(2) / facts["valid/bytes"], rel=1e-5)


def test_perplexity_per_word_spreads_all_nats_over_the_words_whatever_a_token_is(corpus):
    module = PredictionModule(cell("prediction"), corpus)
    metrics = evaluated(module, Split.TEST)
    # A word and an end mark a line are the tokens here.
    assert metrics["word_perplexity"] == pytest.approx(metrics["perplexity"])
    halves = {split: words // 2 for split, words in corpus.words.items()}
    module = PredictionModule(cell("prediction"), dataclasses.replace(corpus, words=halves))
    nats = evaluated(module, Split.TEST)["loss"] * module._targets
    assert module.summarise(Split.TEST)["word_perplexity"] == pytest.approx(math.exp(nats / halves[Split.TEST]))


def test_the_definitions_tell_what_the_text_fills_not_what_was_asked(corpus):
    """There are 16 streams, each as long as the text allows; nothing is remembered if one segment holds it all."""
    longest = -(-len(corpus.splits[Split.TEST]) // 16)
    assert longest < 512
    for asked in ({"length": 512}, {"length": 512, "memory": 9}):
        defined = PredictionModule(xl(evaluation=asked), corpus).definitions(Split.TEST)
        assert f"16 streams in segments of {longest} tokens, no memory" in defined["perplexity"]


def test_an_evaluation_reads_its_own_streams_lengths_and_memory_and_training_its_own(train, monkeypatch):
    spec, read = xl(evaluation={"streams": 3, "length": 5, "memory": 11}), {True: set(), False: set()}
    hidden = LanguageModel.hidden

    def watched(model, tokens, memory):
        # A memory is renewed in place.
        before = memory.layers[0].size(1) if memory.layers else 0
        read[model.training].add((tokens.size(0), tokens.size(1), before))
        return hidden(model, tokens, memory)

    monkeypatch.setattr(LanguageModel, "hidden", watched)
    done = train(spec)
    assert read[True] == {(16, 16, 0), (16, 16, 8)}
    whole = {batch for batch in read[False] if batch[1] == 5}  # the last stretch of a text is shorter
    assert whole == {(3, 5, 0), (3, 5, 5), (3, 5, 10), (3, 5, 11)}
    assert "3 streams in segments of 5 tokens, a memory of 11" in done.outcome.definitions["test/perplexity"]


def test_with_an_adaptive_softmax_a_run_learns_and_goes_on_to_the_same_bits(home, tmp_path):
    spec = xl(model={"cutoffs": [20, 40], "bias": "none", "initialisation": "normal", "inner_dropout": 0.1})
    whole = run(spec, tmp_path / "whole", home)
    losses = list(whole.column("valid/loss").values())
    assert losses == sorted(losses, reverse=True) and whole.outcome.diverged is None
    assert run(spec, tmp_path / "broken", home, stop_after=7).outcome is None
    resumed = run(spec, tmp_path / "broken", home)
    assert resumed.outcome == whole.outcome and same_bits(resumed.weights, whole.weights)


def test_cutoffs_that_the_vocabulary_does_not_reach_are_refused_when_the_text_is_known(train):
    with pytest.raises(KdxError, match=r"model\.cutoffs: the cluster of words from rank 9000 on is empty"):
        train(xl(model={"cutoffs": [20, 9000]}))


def test_perplexities_over_other_vocabularies_do_not_compare_and_bits_per_byte_do(home, tmp_path):
    """The fewer words are known the lower the perplexity, as rare ones need not be told apart; bits have to tell them.

    So a model that learned from fewer lines, and one whose vocabulary is small, are both told as worse.
    """
    test, unknown = {}, {}
    texts = {"many": {"train_lines": 300}, "few": {"train_lines": 20}}
    for name, data in (texts | {"small": {"train_lines": 300, "vocabulary_size": 12}}).items():
        axes = {"data": {"corpus": "synthetic-language", **data}}
        done = run(cell("prediction", batch_tokens=64, steps=60, validate_every=60, axes=axes), tmp_path / name, home)
        test[name] = {metric: value for (metric, _), value in done.rows.items() if metric.startswith("test/")}
        unknown[name] = done.of("begin")[0][6]["test/unknown_rate"]
    assert unknown["small"] > 0.3 > unknown["few"] > 0.1 > unknown["many"] == 0
    assert 3 * test["small"]["test/perplexity"] < test["many"]["test/perplexity"]
    bits = {name: metrics["test/bits_per_byte"] for name, metrics in test.items()}
    assert 2 * bits["many"] < bits["few"] < bits["small"]
    # A letter has 8 bits in the text itself.
    assert max(bits.values()) < 4


def by_slice(metrics: dict[str, float], metric: str, respect: str) -> dict[str, float]:
    """Ends of each slice, such as `5-8`, → what the test gave."""
    start = f"{metric}/{respect}="
    return {name.removeprefix(start): value for name, value in metrics.items() if name.startswith(start)}


@pytest.mark.parametrize("memory", [0, 9])
def test_a_test_tells_the_perplexity_by_how_much_a_token_is_predicted_from(corpus, memory):
    """Token by token, in streams of one text: the place in the segment, and what is remembered of those before."""
    spec = xl(evaluation={"streams": 3, "length": 4, "memory": memory})
    module = PredictionModule(spec, corpus).eval()
    nats: dict[int, list[float]] = {}
    with torch.no_grad():
        for number, batch in enumerate(StreamBatches(corpus.splits[Split.TEST], 3, 4).in_order()):
            result = module.model.output.nats(*module.hidden_and_targets(batch)).view_as(batch.targets)
            for place in range(batch.targets.size(1)):
                its = result[:, place][batch.targets[:, place] != PADDING]
                nats.setdefault(min(4 * number, memory) + place + 1, []).extend(its.tolist())
        module._start()
        for batch in StreamBatches(corpus.splits[Split.TEST], 3, 4).in_order():
            module.evaluate(batch, Split.TEST)
    told = by_slice(module.summarise(Split.TEST), "perplexity", "context")
    assert list(told) == ["1", "2", "3-4", *(["5-8", "9-16"] if memory else [])]
    assert max(nats) == longest_context(spec, corpus, Split.TEST)
    for name, perplexity in told.items():
        low, *_, high = 2 * [int(end) for end in name.split("-")]
        its = [nat for context, values in nats.items() if low <= context <= high for nat in values]
        assert perplexity == pytest.approx(math.exp(sum(its) / len(its)), rel=1e-6)


def test_a_test_tells_the_perplexity_by_how_often_a_token_is_in_the_training_text(corpus):
    module = PredictionModule(cell("prediction"), corpus)
    told = by_slice(evaluated(module, Split.TEST), "perplexity", "frequency")
    counts = Counter(corpus.splits[Split.TRAIN].tolist())
    tokens = Counter(slice_name("frequency", counts[token]) for token in corpus.splits[Split.TEST].tolist())
    assert {f"frequency={name}" for name in told} == tokens.keys() and len(told) > 2
    # Weighed by their tokens, the slices make the whole.
    loss = sum(tokens[f"frequency={name}"] * math.log(one) for name, one in told.items()) / module._targets
    assert loss == pytest.approx(module.summarise(Split.TEST)["loss"])
    # Another text in the place of every split leaves the frequencies those of the training text.
    other = dict.fromkeys(Split, corpus.splits[Split.TEST])
    moved = PredictionModule(cell("prediction"), dataclasses.replace(corpus, splits=other))
    moved.model.load_state_dict(module.model.state_dict())
    assert by_slice(evaluated(moved, Split.TEST), "perplexity", "frequency") == told

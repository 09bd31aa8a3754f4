"""Prediction is scored on every token of a text once, per token and per word."""

import dataclasses
import math

import pytest
import torch
from runs import VALIDATIONS, cell

from kdx.axes import Split
from kdx.data.batching import StreamBatches
from kdx.data.corpus import StreamCorpus, load_stream
from kdx.training.prediction import PredictionModule


@pytest.fixture(scope="module")
def corpus(home) -> StreamCorpus:
    return load_stream(cell("prediction").data, home)


def evaluated(module: PredictionModule, split: Split, streams: int = 16) -> dict[str, float]:
    module.eval()
    module._start()
    with torch.no_grad():
        for batch in StreamBatches(module.corpus.splits[split], streams, 16).in_order():
            module.evaluate(batch, split)
    return module.summarise(split)


@pytest.mark.parametrize("streams", [1, 7, 16])
def test_every_token_of_the_text_is_scored_once(corpus, streams):
    module = PredictionModule(cell("prediction"), corpus)
    with torch.no_grad():
        module.model.output.weight.zero_()
    metrics = evaluated(module, Split.VALID, streams)
    assert module._tokens == len(corpus.splits[Split.VALID])
    assert metrics["perplexity"] == pytest.approx(corpus.vocabulary.size, rel=1e-5)


def test_perplexity_per_word_spreads_all_nats_over_the_words_whatever_a_token_is(corpus):
    module = PredictionModule(cell("prediction"), corpus)
    metrics = evaluated(module, Split.TEST)
    # A word and an end mark a line are the tokens here.
    assert metrics["word_perplexity"] == pytest.approx(metrics["perplexity"])
    halves = {split: words // 2 for split, words in corpus.words.items()}
    module = PredictionModule(cell("prediction"), dataclasses.replace(corpus, words=halves))
    nats = evaluated(module, Split.TEST)["loss"] * module._tokens
    assert module.summarise(Split.TEST)["word_perplexity"] == pytest.approx(math.exp(nats / halves[Split.TEST]))


def test_the_definitions_say_what_a_token_and_a_context_are(corpus):
    defined = PredictionModule(cell("prediction"), corpus).definitions(Split.VALID)
    assert defined.keys() == {"loss", "perplexity", "word_perplexity"}
    assert "mean over words and one end mark a line" in defined["loss"]
    assert all("segments of 16 tokens, no memory" in text for text in defined.values())


def test_every_validation_of_a_run_gives_the_three_metrics_and_there_is_no_text_to_keep(unbroken):
    whole = unbroken("prediction")
    for name in ("valid/loss", "valid/perplexity", "valid/word_perplexity"):
        assert list(whole.column(name)) == VALIDATIONS
    assert whole.lines is None

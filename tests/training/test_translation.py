"""Translation is scored by sacrebleu, on what the cell's search finds, in the order of the corpus."""

import importlib.metadata
import math

import pytest
import sacrebleu
import torch
from runs import cell

from kdx.data.batching import ParallelBatches
from kdx.data.parallel import ParallelCorpus, load_parallel
from kdx.grid.sections import Data
from kdx.tasks.difficulty import slice_name
from kdx.training.translation import TranslationModule
from kdx.vocabulary import Split


@pytest.fixture(scope="module")
def corpus(home) -> ParallelCorpus:
    return load_parallel(cell("translation").data, home)


def evaluated(module: TranslationModule, split: Split) -> dict[str, float]:
    module.eval()
    module._start()
    with torch.no_grad():
        for batch in ParallelBatches(module.corpus.splits[split], 1024).in_order():
            module.evaluate(batch, split)
    return module.summarise(split)


def test_bleu_is_that_of_sacrebleu_on_the_translations_that_are_kept(unbroken, corpus):
    whole = unbroken("translation")
    references = list(corpus.splits[Split.TEST].references)
    assert len(whole.lines) == len(references)
    # The generated languages are tokenised, so sacrebleu does not tokenise them.
    score = sacrebleu.corpus_bleu(whole.lines, [references], tokenize="none", force=True).score
    assert whole.rows["test/bleu", whole.outcome.valid_step] == score


BEAM = {"beam": 5, "length_penalty": 0.6, "penalty": "gnmt", "longest": [0.0, 200]}


@pytest.mark.parametrize(
    ("evaluation", "valid", "test"),
    [
        ({}, "greedy translations of at most 2 × source + 10 tokens", None),
        (
            {"beam": 4, "valid_beam": 2, "length_penalty": 0.0, "longest": [1.5, 0]},
            "best ln p of a beam of 2, n tokens with the end mark, at most 1.5 × source + 0 tokens",
            "best ln p of a beam of 4, n tokens with the end mark, at most 1.5 × source + 0 tokens",
        ),
        (
            {"valid_beam": 5, "beam": 5},
            "best ln p / n^1 of a beam of 5, n tokens with the end mark, at most 2 × source + 10 tokens",
            None,
        ),
        (
            BEAM,
            "greedy translations of at most 0 × source + 200 tokens",
            "best ln p / ((5 + n) / 6)^0.6 of a beam of 5, n tokens with the end mark, at most 0 × source + 200 tokens",
        ),
    ],
)
def test_bleu_is_defined_by_the_search_and_by_its_signature(evaluation, valid, test, corpus):
    module = TranslationModule(cell("translation", select="bleu", evaluation=evaluation), corpus)
    module.bleu.signatures = {"bleu": "as it is", "bleu_detokenised": "as raw"}
    version = importlib.metadata.version("sacremoses")
    assert module.definitions(Split.VALID)["bleu"] == f"sacrebleu, {valid}: as it is"
    assert "bleu_detokenised" not in module.definitions(Split.VALID)
    assert module.definitions(Split.TEST)["bleu"] == f"sacrebleu, {test or valid}: as it is"
    assert module.definitions(Split.TEST)["bleu_detokenised"] == (
        f"sacrebleu, {test or valid}, detokenised by sacremoses {version} (target): as raw"
    )


def test_a_wider_beam_gives_other_translations_and_their_metrics_in_a_run(train, unbroken):
    greedy, wide = unbroken("translation"), train(cell("translation", evaluation={"beam": 3, "longest": [1.0, 2]}))
    assert wide.lines != greedy.lines and len(wide.lines) == len(greedy.lines)
    assert wide.column("valid/loss") == greedy.column("valid/loss")
    for name in ("test/bleu", "test/bleu_detokenised"):
        assert list(wide.column(name)) == [wide.outcome.valid_step]
        assert "beam of 3" in wide.outcome.definitions[name]


@pytest.mark.parametrize("vocabulary", [{"vocabulary": "word"}, {"vocabulary": "subword-nmt", "merges": 30}])
def test_each_language_may_have_a_dictionary_of_its_own(vocabulary, home, monkeypatch):
    spec = cell("translation", model={"embeddings": "tied"})
    data = Data(**spec.data.model_dump() | vocabulary | {"dictionaries": "separate"})
    spec = spec.model_copy(update={"data": data})
    corpus = load_parallel(spec.data, home)
    assert corpus.source_vocabulary.size != corpus.target_vocabulary.size
    module = TranslationModule(spec, corpus)
    assert module.model.source_input.embedding.num_embeddings == corpus.source_vocabulary.size
    assert module.model.output.out_features == corpus.target_vocabulary.size
    evaluated(module, Split.TEST)
    target = corpus.splits[Split.TEST].targets[0].tolist()
    monkeypatch.setattr(module.model, "translate", lambda source, *_: [target] * len(source))
    evaluated(module, Split.TEST)
    assert set(module.lines()) == {corpus.splits[Split.TEST].references[0]}


def test_perfect_translations_score_a_hundred_and_come_in_the_order_of_the_corpus(corpus, monkeypatch):
    module = TranslationModule(cell("translation"), corpus)
    text = corpus.splits[Split.TEST]
    targets = {tuple(text.sources[i].tolist()): text.targets[i].tolist() for i in range(len(text.sources))}
    monkeypatch.setattr(
        module.model,
        "translate",
        lambda source, padding, search: [
            targets[tuple(row[~hidden].tolist())][:-1] for row, hidden in zip(source, padding, strict=True)
        ],
    )
    assert evaluated(module, Split.TEST)["bleu"] == pytest.approx(100)
    assert module.lines() == list(text.references)


def test_validation_translates_only_where_bleu_selects_and_the_test_always(unbroken, corpus):
    assert unbroken("translation").column("valid/bleu") == {}
    assert len(unbroken("translation").column("test/bleu")) == 1
    by_bleu = TranslationModule(cell("translation", select="bleu"), corpus)
    assert "bleu" in evaluated(by_bleu, Split.VALID)


def test_a_pass_forgets_the_translations_of_the_one_before(corpus):
    module = TranslationModule(cell("translation"), corpus)
    evaluated(module, Split.TEST)
    module.on_test_epoch_start()
    batch = ParallelBatches(corpus.splits[Split.TEST], 256).batch(0)
    module.test_step(batch, 0)
    assert len(module.lines()) == len(batch.index) < len(corpus.splits[Split.TEST].references)


def test_the_loss_is_per_target_token_end_marks_included(corpus):
    module = TranslationModule(cell("translation"), corpus)
    with torch.no_grad():
        module.model.output.weight.zero_()
    metrics = evaluated(module, Split.VALID)
    assert module._targets == len(corpus.splits[Split.VALID].targets.flat)
    assert metrics["perplexity"] == pytest.approx(corpus.target_vocabulary.size, rel=1e-5)
    assert module.definitions(Split.VALID)["loss"].startswith("mean over target words and end marks")


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", [{"vocabulary": "word"}, {"vocabulary": "subword-nmt", "merges": 30}])
def test_a_test_tells_its_metrics_by_the_words_of_the_source(vocabulary, home):
    spec = cell("translation")
    spec = spec.model_copy(update={"data": Data(**spec.data.model_dump() | vocabulary)})
    corpus = load_parallel(spec.data, home)
    module = TranslationModule(spec, corpus)
    metrics = evaluated(module, Split.TEST)
    text, lines = corpus.splits[Split.TEST], module.lines()
    of_slices: dict[str, list[int]] = {}
    for index in range(len(text.sources)):
        words = len(corpus.source_vocabulary.decode(text.sources[index].tolist()).split())
        of_slices.setdefault(slice_name("source-words", words), []).append(index)
    assert len(of_slices) > 1
    told = {name.removeprefix("bleu/"): value for name, value in metrics.items() if name.startswith("bleu/")}
    assert told.keys() == of_slices.keys()
    for name, its in of_slices.items():
        references = [[text.references[index] for index in its]]
        score = sacrebleu.corpus_bleu([lines[index] for index in its], references, tokenize="none", force=True).score
        assert told[name] == score
    tokens = {name: sum(len(text.targets[index]) for index in its) for name, its in of_slices.items()}
    loss = sum(tokens[name] * math.log(metrics[f"perplexity/{name}"]) for name in tokens) / module._targets
    assert loss == pytest.approx(metrics["loss"])
    assert metrics.keys() == module.definitions(Split.TEST).keys()
    assert module.definitions(Split.TEST)["bleu/source-words=5-8"].startswith(
        "of targets with source-words=5-8, the number of words in the source sentence: sacrebleu, greedy"
    )

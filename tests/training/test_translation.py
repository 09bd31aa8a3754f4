"""Translation is scored by sacrebleu, on greedy translations in the order of the corpus."""

import dataclasses

import pytest
import sacrebleu
import torch
from runs import VALIDATIONS, cell

from kdx.axes import Split
from kdx.data.batching import ParallelBatches
from kdx.data.corpus import ParallelCorpus, load_parallel
from kdx.grid.sections import Data
from kdx.training.translation import TranslationModule


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
    # The generated languages are tokenised, so sacrebleu is told to leave them alone.
    score = sacrebleu.corpus_bleu(whole.lines, [references], tokenize="none", force=True).score
    assert whole.rows["test/bleu", whole.outcome.valid_step] == score


def test_bleu_is_defined_by_its_signature(unbroken):
    defined = unbroken("translation").outcome.definitions["test/bleu"]
    assert defined == (
        f"sacrebleu, greedy translations: nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:{sacrebleu.__version__}"
    )


@pytest.mark.parametrize(("tokenised", "tokeniser"), [(True, "none"), (False, "13a")])
def test_text_that_is_not_yet_tokenised_is_tokenised_by_sacrebleu(tokenised, tokeniser, corpus):
    module = TranslationModule(cell("translation"), dataclasses.replace(corpus, tokenised=tokenised))
    assert "bleu" not in module.definitions()
    evaluated(module, Split.TEST)
    assert f"|tok:{tokeniser}|" in module.definitions()["bleu"]


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
        lambda source, padding, longest: [
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
    assert module._tokens == len(corpus.splits[Split.VALID].targets.flat)
    assert metrics["perplexity"] == pytest.approx(corpus.target_vocabulary.size, rel=1e-5)
    assert module.definitions()["loss"].startswith("mean over target words and end marks")


def test_every_validation_of_a_run_gives_loss_and_perplexity(unbroken):
    for name in ("valid/loss", "valid/perplexity"):
        assert list(unbroken("translation").column(name)) == VALIDATIONS

"""A few lines are read as any other text of their kind, by a cell of any size and vocabulary."""

from typing import Any

import pytest

from kdx.data.labelled import LabelledCorpus
from kdx.data.parallel import ParallelCorpus
from kdx.data.stream import StreamCorpus
from kdx.data.vocabulary import BytePairVocabulary, SubwordNmtVocabulary, WordVocabulary
from kdx.grid.spec import CellSpec
from kdx.training.few_lines import LENGTH, ROWS, few_lines
from kdx.vocabulary import Split

MODEL = {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "inner": 16}


def cell(task: str, data: dict[str, Any], **fields: Any) -> CellSpec:
    layers = {"prediction": {"encoder_layers": 0}, "classification": {"decoder_layers": 0}}.get(task, {})
    training = {"steps": 20, "batch_tokens": 4096, "warmup": 5} | ({"length": 512} if task == "prediction" else {})
    model = MODEL | layers | fields.pop("model", {})
    return CellSpec.model_validate({"task": task, "data": data, "model": model, "training": training, **fields})


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({}, WordVocabulary),
        ({"vocabulary_size": 30_000}, WordVocabulary),
        ({"vocabulary": "bpe", "vocabulary_size": 10}, BytePairVocabulary),
        ({"vocabulary": "bpe", "vocabulary_size": 4000}, BytePairVocabulary),
        ({"vocabulary": "subword-nmt", "merges": 10_000}, SubwordNmtVocabulary),
    ],
)
def test_a_stream_has_the_vocabulary_of_the_cell(data, kind):
    spec = cell("prediction", {"corpus": "wikitext103", "train_lines": 10**6, **data})
    few, corpus = few_lines(spec)
    assert isinstance(corpus, StreamCorpus) and type(corpus.vocabulary) is kind
    assert few.training.batch_tokens == ROWS * LENGTH and few.training.length == LENGTH
    assert all(ROWS * LENGTH < len(tokens) < 500 for tokens in corpus.splits.values())


def test_every_cluster_of_an_adaptive_softmax_has_words():
    spec = cell("prediction", {"corpus": "wikitext103"}, model={"cutoffs": [20_000, 40_000, 200_000]})
    few, corpus = few_lines(spec)
    assert len(few.model.cutoffs) == 3 and few.model.cutoffs[-1] < corpus.vocabulary.size


def test_an_evaluation_of_other_lengths_reads_few_tokens():
    wanted = {"streams": 64, "length": 4096, "memory": 640}
    spec = cell("prediction", {"corpus": "wikitext2"}, memory=8, position="relative", evaluation=wanted)
    read = few_lines(spec)[0].evaluation
    assert (read.streams, read.length, read.memory) == (ROWS, LENGTH, 640)


@pytest.mark.parametrize("languages", [{}, {"source": "fr", "target": "it"}])
@pytest.mark.parametrize("dictionaries", ["joint", "separate"])
def test_sentences_have_the_languages_and_dictionaries_of_the_cell(languages, dictionaries):
    data = {"corpus": "multi30k", "dictionaries": dictionaries, **languages}
    embeddings = "separate" if dictionaries == "separate" else "shared"
    few, corpus = few_lines(cell("translation", data, model={"embeddings": embeddings}))
    assert isinstance(corpus, ParallelCorpus) and corpus.target == languages.get("target", "en")
    assert (corpus.source_vocabulary is corpus.target_vocabulary) == (dictionaries == "joint")
    each, more = few.evaluation.longest
    assert each * LENGTH + more < 20


def test_lines_have_labels():
    _, corpus = few_lines(cell("classification", {"corpus": "mine"}))
    assert isinstance(corpus, LabelledCorpus) and len(corpus.labels) == 2
    assert {*corpus.splits[Split.TEST].labels} == {0, 1}


def test_nothing_is_left_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _, corpus = few_lines(cell("prediction", {"corpus": "wikitext2"}))
    assert list(tmp_path.iterdir()) == [] and len(corpus.splits[Split.TRAIN][:5]) == 5

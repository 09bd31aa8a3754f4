"""What an evaluation reads of a corpus stands where its test is looked for."""

import numpy as np
import pytest

from kdx.data.corpus import load_corpus
from kdx.data.evaluated import evaluated_corpus
from kdx.errors import KdxError
from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, resolve_evaluation
from kdx.grid.spec import CellSpec
from kdx.vocabulary import Split

CELLS = {
    "prediction": {
        "data": {"corpus": "synthetic-language", "train_lines": 300},
        "training": {"batch_tokens": 512, "length": 32},
    },
    "translation": {"data": {"corpus": "synthetic-translation", "train_lines": 300}},
    "set": {"data": {"corpus": "synthetic-sets", "train_examples": 50}},
}


def read(task: str, **settings):
    """The corpus of a cell, and that of an evaluation of it."""
    spec = CellSpec.model_validate({"task": task, **CELLS[task]})
    corpus = load_corpus(spec.task, spec.data)
    asked = EvaluationRequest("one", EvaluationSettings.model_validate(settings))
    return corpus, evaluated_corpus(spec, resolve_evaluation(spec, asked), corpus)


@pytest.mark.parametrize("task", CELLS)
@pytest.mark.parametrize("split", ["valid", "test"])
def test_one_split_stands_in_the_place_of_all(data_home, task, split):
    corpus, result = read(task, split=split)
    assert all(result.splits[each] is corpus.splits[split] for each in Split)
    for name, fact in corpus.facts.items():
        parts = name.split("/")
        if split in parts:
            assert result.facts["/".join("test" if part == split else part for part in parts)] == fact
    assert result.fingerprint == corpus.fingerprint


def test_a_length_that_a_text_cannot_fill_is_refused_with_the_longest_that_it_can(data_home):
    corpus, _ = read("prediction")
    longest = -(-len(corpus.splits[Split.TEST]) // 16)
    assert np.array_equal(read("prediction", length=longest)[1].splits[Split.TEST], corpus.splits[Split.TEST])
    with pytest.raises(KdxError, match=f"segments of {longest + 1} tokens, but the test text") as caught:
        read("prediction", length=longest + 1)
    assert caught.value.place == "evaluation.length" and caught.value.allowed == f"at most {longest}"


def test_an_unknown_text_is_refused_where_the_evaluation_names_it(data_home):
    with pytest.raises(KdxError, match="unknown corpus `nowhere`") as caught:
        read("prediction", corpus="nowhere")
    assert caught.value.place == "corpus"

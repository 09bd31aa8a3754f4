"""Generated examples become arrays."""

import dataclasses
import math

import pytest

from kdx.data.corpus import load_corpus
from kdx.data.generated import load_examples
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN
from kdx.vocabulary import Split


def test_generated_examples_are_made_once_and_told_by_a_fingerprint(home, monkeypatch):
    made = BUILT_IN["synthetic-sets"]
    data = Data(corpus="synthetic-sets", train_examples=50)
    corpus = load_examples(data, None, TASKS.definition("set"))
    assert {split: len(examples) for split, examples in corpus.splits.items()} == {**made.sizes, Split.TRAIN: 50}
    assert corpus.tokens == made.tokens
    for split, examples in corpus.splits.items():
        expected = made.generate("synthetic-sets", 0, split, len(examples))
        assert examples.inputs.keys() == expected.inputs.keys()
        assert all((examples.inputs[name] == array).all() for name, array in expected.inputs.items())
        assert (examples.targets == expected.targets).all()
    other, fewer = (
        load_examples(data.model_copy(update=change), None, TASKS.definition("set"))
        for change in ({"seed": 1}, {"train_examples": 49})
    )
    assert len({corpus.fingerprint, other.fingerprint, fewer.fingerprint}) == 3
    monkeypatch.setitem(BUILT_IN, "synthetic-sets", dataclasses.replace(made, make=None))
    assert load_corpus("set", data).fingerprint == corpus.fingerprint


def test_unigram_loss_of_examples_is_that_of_their_targets(home):
    corpus = load_examples(Data(corpus="synthetic-sets", train_examples=10), None, TASKS.definition("set"))
    train, valid = (corpus.splits[split].targets.ravel().tolist() for split in (Split.TRAIN, Split.VALID))
    expected = -sum(math.log((train.count(target) + 1) / (10 + 4)) for target in valid) / len(valid)
    assert corpus.unigram_loss == pytest.approx(expected)


@pytest.mark.parametrize("name", ["synthetic-tours", "synthetic-language", "multi30k", "absent"])
def test_only_examples_for_the_task_serve_it(home, name):
    with pytest.raises(KdxError) as caught:
        load_corpus("set", Data(corpus=name))
    assert str(caught.value) == (
        f"data.corpus: `{name}` is no corpus of generated examples for task set\n  allowed: synthetic-sets"
    )

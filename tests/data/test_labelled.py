"""Labelled text, the user's own and generated."""

import math

import pytest

from kdx.data.corpus import load_corpus
from kdx.data.labelled import load_labelled
from kdx.data.prepare import prepare
from kdx.data.vocabulary import BEGIN
from kdx.errors import KdxError
from kdx.grid.sections import Data
from kdx.vocabulary import Split

TEXT = {
    "train.txt": "good film\nbad film\nfine film\n",
    "train.labels": "yes\nno\nyes\n",
    "valid.txt": "bad play\n",
    "valid.labels": "no\n",
    "test.txt": "good play\nbad\n",
    "test.labels": "yes\nno\n",
}


@pytest.fixture
def films(tmp_path):
    """Prepare a text as the corpus `films`, some of its files changed."""

    def prepared(**changed: str) -> Data:
        folder = tmp_path / "films"
        folder.mkdir()
        for name, text in {**TEXT, **{key.replace("_", "."): text for key, text in changed.items()}}.items():
            (folder / name).write_text(text)
        prepare("films", folder)
        return Data(corpus="films")

    return prepared


def test_text_of_ones_own_is_lines_beside_their_labels(films):
    corpus = load_labelled(films())
    assert corpus.labels == ("no", "yes")
    lines, labels = corpus.splits[Split.TEST].lines, corpus.splits[Split.TEST].labels
    assert [corpus.vocabulary.decode(line) for line in lines] == ["good <unk>", "bad"]
    assert all(line[0] == BEGIN for line in lines)
    assert labels.tolist() == [1, 0]
    assert corpus.unigram_loss == pytest.approx(-math.log(2 / 5))


def test_the_same_lines_with_other_labels_are_another_test_text(films, tmp_path):
    one = load_labelled(films())
    (tmp_path / "films" / "test.labels").write_text("no\nno\n")
    prepare("other", tmp_path / "films")
    other = load_labelled(Data(corpus="other"))
    assert one.facts["test/text"] != other.facts["test/text"]
    assert one.facts["valid/text"] == other.facts["valid/text"]
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"train_labels": "yes\nno\nmaybe\n", "valid_labels": "maybe\n"},
            "line 1 of valid of `films` has the label `maybe`, which no training line has",
        ),
        (
            {"test_labels": "yes\n\n"},
            "line 2 of test of `films` has the label ``, which no training line has",
        ),
        ({"train_labels": "yes\nyes\nno\n"}, "the training text of `films` has 1 different labels"),
    ],
)
def test_labels_that_no_training_line_has_are_refused(films, changed, problem):
    data = films(**changed).model_copy(update={"train_lines": 2})
    with pytest.raises(KdxError) as refused:
        load_labelled(data)
    assert (refused.value.problem, refused.value.place) == (problem, "data.corpus")


@pytest.mark.parametrize(("task", "corpus"), [("classification", "synthetic-language"), ("prediction", "films")])
def test_text_of_another_kind_is_refused(films, task, corpus):
    films()
    with pytest.raises(KdxError, match="labelled text, for classification") as refused:
        load_corpus(task, Data(corpus=corpus))
    assert ("films" in str(refused.value.allowed)) is (task == "classification")

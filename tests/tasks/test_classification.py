"""Text classification from end to end: own text, its faults, what a run measures, and that it resumes bit for bit."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kdx.axes import Split
from kdx.data.corpora.synthetic_order import TRADES, generate
from kdx.data.corpus import load_corpus
from kdx.data.labelled import LabelledCorpus, load_labelled
from kdx.data.prepare import prepare
from kdx.data.vocabulary import BEGIN
from kdx.errors import KdxError
from kdx.grid.identity import canonical
from kdx.grid.sections import Data
from kdx.grid.spec import CellSpec
from kdx.models.classification import ClassificationModel
from kdx.training.classification import ClassificationModule, LabelledBatch, LabelledBatches

TEXT = {
    "train.txt": "good film\nbad film\nfine film\n",
    "train.labels": "yes\nno\nyes\n",
    "valid.txt": "bad play\n",
    "valid.labels": "no\n",
    "test.txt": "good play\nbad\n",
    "test.labels": "yes\nno\n",
}


def cell(**fields) -> CellSpec:
    model = {"width": 16, "heads": 2, "encoder_layers": 1, "inner": 16, "dropout": 0.0}
    return CellSpec.model_validate(
        {"task": "classification", "data": {"corpus": "synthetic-order"}, "model": model, **fields}
    )


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("KDX_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def films(tmp_path):
    """Prepares a text of one's own as the corpus `films`, some of its files changed."""

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
        ({"valid_labels": "maybe\n"}, "line 1 of valid of `films` has the label `maybe`, which no training line has"),
        ({"test_labels": "yes\n\n"}, "line 2 of test of `films` has the label ``, which no training line has"),
        ({"train_labels": "yes\nyes\nyes\n"}, "the training text of `films` has 1 different labels"),
    ],
)
def test_labels_that_cannot_be_learned_are_refused(films, changed, problem):
    data = films(**changed)
    with pytest.raises(KdxError) as refused:
        load_labelled(data)
    assert (refused.value.problem, refused.value.place) == (problem, "data.corpus")


def test_as_many_labels_as_lines_are_needed(films):
    with pytest.raises(KdxError, match="line by line they must match"):
        films(train_labels="yes\nno\n")


def test_long_training_lines_are_left_out_and_counted(films):
    data = films(train_txt="good film\nbad film\na very very long good film\n")
    corpus = load_labelled(data.model_copy(update={"max_tokens": 4}))
    assert len(corpus.splits[Split.TRAIN].labels) == 2
    assert corpus.notes == (
        "films: 1 of 3 training lines are left out; they have more than 4 tokens (data.max_tokens)",
    )


@pytest.mark.parametrize(("task", "corpus"), [("classification", "synthetic-language"), ("prediction", "films")])
def test_text_of_another_kind_is_refused(films, task, corpus):
    films()
    with pytest.raises(KdxError, match="labelled text, for classification") as refused:
        load_corpus(task, Data(corpus=corpus))
    assert ("films" in str(refused.value.allowed)) is (task == "classification")


def test_every_generated_line_has_a_twin_of_the_same_words_with_another_label():
    text = generate(0, 30_000)
    labels = {line: label for split in text.values() for line, label in zip(split["txt"], split["labels"], strict=True)}
    assert set(labels.values()) == set(TRADES)
    twins = 0
    for line, label in labels.items():
        one, other = (word for word in line.split() if word in TRADES)
        assert label in (one, other)
        twin = " ".join({one: other, other: one}.get(word, word) for word in line.split())
        if twin in labels:
            twins += 1
            assert sorted(twin.split()) == sorted(line.split())
            assert {label, labels[twin]} == {one, other}
    assert twins > 0.6 * len(labels)


@given(st.integers(1, 40), st.integers(0, 3))
def test_generated_text_is_a_function_of_the_seed_and_fewer_lines_are_the_first_of_more(lines, seed):
    few, more = generate(seed, lines), generate(seed, lines + 5)
    assert few["train"]["txt"] == more["train"]["txt"][:lines]
    assert few["test"] == more["test"]
    assert not set(few["train"]["txt"]) & set(few["test"]["txt"])


def test_pooling_is_the_mean_unless_said_otherwise_and_no_other_task_has_it():
    assert cell().option("pooling") == "mean" and '"pooling":"mean"' in canonical(cell())
    assert canonical(cell(pooling="first")) != canonical(cell())
    other = CellSpec.model_validate({"task": "prediction", "data": {"corpus": "any"}})
    assert other.option("pooling") is None and "pooling" not in canonical(other)
    with pytest.raises(ValidationError, match="translation has no such setting, classification has"):
        CellSpec.model_validate({"task": "translation", "data": {"corpus": "any"}, "pooling": "first"})
    with pytest.raises(ValidationError) as unknown:
        cell(pooling="last")
    assert unknown.value.errors()[0]["ctx"]["expected"] == "'mean', 'first'"


@pytest.mark.parametrize(("pooling", "position"), list(product(("mean", "first"), ("none", "product"))))
def test_padding_changes_nothing_and_order_counts_where_positions_are_known(pooling, position):
    torch.manual_seed(0)
    model = ClassificationModel(cell(pooling=pooling, position=position), 20, 3).double().eval()
    line = torch.tensor([[BEGIN, 5, 6, 7]])
    alone = model(line, line == 0)
    padded = torch.cat([line, torch.zeros(1, 3, dtype=torch.long)], 1)
    torch.testing.assert_close(model(padded, padded == 0), alone)
    turned = model(line[:, [0, 3, 2, 1]], line == 0)
    assert torch.allclose(turned, alone) is (position == "none")


def test_a_batch_has_lines_of_like_length_and_an_epoch_every_line_once():
    corpus = load_labelled(Data(corpus="synthetic-order", train_lines=200))
    batches = LabelledBatches(corpus.splits[Split.TRAIN], 64, seed=3)
    seen = [batches.batch(step) for step in range(len(batches))]
    assert sum(len(batch.labels) for batch in seen) == 200
    assert all(batch.tokens.numel() <= 64 for batch in seen)
    assert [b.labels.tolist() for b in seen] != [
        batches.batch(len(batches) + s).labels.tolist() for s in range(len(seen))
    ]


def test_accuracy_and_macro_f1_are_those_of_their_definitions():
    corpus = LabelledCorpus(None, ("a", "b", "c"), {}, "", 1.0, {})  # type: ignore[arg-type]

    class Told(torch.nn.Module):
        """Tells the label that the second token names."""

        def forward(self, tokens, padding):
            return torch.nn.functional.one_hot(tokens[:, 1], 3).float() * 10

    module = ClassificationModule.__new__(ClassificationModule)
    torch.nn.Module.__init__(module)
    module.corpus, module.model = corpus, Told()
    module._nats, module._targets = torch.zeros((), dtype=torch.float64), 0
    module._start()
    right, told = torch.tensor([0, 0, 0, 1, 1, 0]), torch.tensor([0, 0, 1, 1, 0, 0])
    for part in (slice(0, 4), slice(4, 6)):
        tokens = torch.stack([torch.full_like(told[part], BEGIN), told[part]], 1)
        module.evaluate(LabelledBatch(tokens, tokens < 0, right[part]), Split.TEST)
    metrics = module.summarise(Split.TEST)
    assert metrics["accuracy"] == pytest.approx(100 * 4 / 6)
    # a: 3 of 4 there, 3 of 4 told; b: 1 of 2 there, 1 of 2 told; c is neither there nor told.
    assert metrics["macro_f1"] == pytest.approx(100 * (2 * 3 / 8 + 2 * 1 / 4) / 2)

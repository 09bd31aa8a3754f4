"""Batches of lines, accuracy and macro F1."""

import pytest
import torch

from kdx.data.batching import LabelledBatch, LabelledBatches
from kdx.data.labelled import LabelledCorpus, load_labelled
from kdx.data.vocabulary import BEGIN
from kdx.grid.sections import Data
from kdx.training.classification import ClassificationModule
from kdx.vocabulary import Split


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
    corpus = LabelledCorpus(None, ("a", "b", "c"), {}, fingerprint="", unigram_loss=1.0, facts={})  # type: ignore[arg-type]

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
        module.evaluate(LabelledBatch(tokens, tokens < 0, right[part], torch.arange(6)[part]), Split.TEST)
    metrics = module.summarise(Split.TEST)
    assert metrics["accuracy"] == pytest.approx(100 * 4 / 6)
    # a: 3 of 4 there, 3 of 4 told; b: 1 of 2 there, 1 of 2 told; c is neither there nor told.
    assert metrics["macro_f1"] == pytest.approx(100 * (2 * 3 / 8 + 2 * 1 / 4) / 2)

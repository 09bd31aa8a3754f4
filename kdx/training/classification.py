"""Classification: cross-entropy of the label, accuracy, and F1 averaged over the labels."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from kdx.data.batching import LabelledBatch, LabelledBatches
from kdx.data.documents import Documents, blocks
from kdx.data.labelled import LabelledCorpus
from kdx.data.vocabulary import BEGIN, PADDING, Vocabulary
from kdx.grid.spec import CellSpec
from kdx.models.classification import ClassificationModel
from kdx.training.module import Batches, TaskModule
from kdx.vocabulary import Split
from kdx.words import option


class ClassificationModule(TaskModule):
    """The label of a line of text."""

    name = "classification"
    reads = "labelled text"
    metrics: ClassVar[Mapping[str, tuple[str, str, str]]] = {
        "accuracy": ("max", "percent", "target"),
        "macro_f1": ("max", "percent", "class"),
        "loss": ("min", "nats", "target"),
    }
    attentions = ("encoder-self",)
    embeddings = ("separate",)
    pooling: str = option("mean", words=("mean", "first"))
    """How a line becomes one vector: the mean of its tokens, or its first token, a mark of the beginning."""

    texts = ("text",)

    def __init__(self, spec: CellSpec, corpus: LabelledCorpus) -> None:
        super().__init__(spec, ClassificationModel(spec, corpus.vocabulary.size, len(corpus.labels)))
        self.corpus = corpus
        self._confusion = torch.zeros(0)

    @classmethod
    def batches(cls, spec: CellSpec, corpus: LabelledCorpus, seed: int) -> Batches:
        return Batches.of(lambda split: LabelledBatches(corpus.splits[split], spec.training.batch_tokens, seed))

    @classmethod
    def model_of(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> ClassificationModel:
        return ClassificationModel(spec, len(state["input.embedding.weight"]), len(state["output.weight"]))

    def vocabulary(self, text: str) -> Vocabulary:
        return self.corpus.vocabulary

    def inputs(self, *texts: str) -> dict[str, Tensor]:
        (line,) = texts
        tokens = torch.tensor([[BEGIN, *self.corpus.vocabulary.encode(line)]])
        return {"tokens": tokens, "padding": tokens == PADDING}

    def classify(self, lines: Sequence[str]) -> list[dict[str, float]]:
        shares = (self.model(**self.inputs(line)).float().softmax(-1)[0].tolist() for line in lines)
        return [
            dict(sorted(zip(self.corpus.labels, each, strict=True), key=lambda pair: pair[1], reverse=True))
            for each in shares
        ]

    def loss(self, batch: LabelledBatch) -> Tensor:
        logits = self.model(batch.tokens, batch.padding).float()
        return functional.cross_entropy(logits, batch.labels, label_smoothing=self.spec.training.label_smoothing)

    def evaluate(self, batch: LabelledBatch, split: Split) -> None:
        logits = self.model(batch.tokens, batch.padding).float()
        nats, likeliest = functional.cross_entropy(logits, batch.labels, reduction="none"), logits.argmax(-1)
        self.add(nats, len(batch.labels))
        self.by_document.add(batch.index, nats=nats, right=likeliest == batch.labels)
        pairs = batch.labels * len(self.corpus.labels) + likeliest
        self._confusion += torch.bincount(pairs, minlength=self._confusion.numel()).cpu().view_as(self._confusion)

    def test_documents(self) -> Documents:
        return blocks(len(self.corpus.splits[Split.TEST].labels))

    def _start(self) -> None:
        super()._start()
        labels = len(self.corpus.labels)
        self._confusion = torch.zeros(labels, labels, dtype=torch.long)

    def summarise(self, split: Split) -> dict[str, float]:
        right = self._confusion.diagonal().double()
        # A label that no line has and no prediction names has no F1; one that is never predicted correctly has F1 = 0.
        lines = self._confusion.sum(0) + self._confusion.sum(1)  # that have the label, plus lines predicted to have it
        f1 = (2 * right / lines)[lines > 0]
        return {
            "accuracy": 100 * right.sum().item() / self._targets,
            "macro_f1": 100 * f1.mean().item(),
            "loss": super().summarise(split)["loss"],
        }

    def definitions(self, split: Split) -> dict[str, str]:
        return {
            "accuracy": "lines whose likeliest label is the right one, in percent",
            "macro_f1": "mean over labels of 2 × right / (lines that have the label + lines for which it is told), in "
            "percent; without labels for which that is 0 / 0",
            "loss": "mean over lines of -ln p, in nats, without label smoothing",
        }

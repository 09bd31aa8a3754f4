"""The tasks on generated examples: cross-entropy of each class that an example asks for."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from kdx.data.batching import ExampleBatch, ExampleBatches
from kdx.data.documents import Documents, blocks
from kdx.data.examples import NO_ANSWER
from kdx.data.generated import ExampleCorpus
from kdx.data.reading import examples_of_a_batch
from kdx.grid.spec import CellSpec
from kdx.training.module import Batches, TaskModule
from kdx.vocabulary import Split


class ExamplesModule(TaskModule):
    """Classifies, and counts how often the likeliest class is the right one."""

    reads = "generated examples"
    metrics: ClassVar[Mapping[str, tuple[str, str, str]]] = {
        "accuracy": ("max", "percent", "target"),
        "loss": ("min", "nats", "target"),
    }
    embeddings: ClassVar[tuple[str, ...]] = ("separate",)

    unit = "examples"
    build: ClassVar[type[nn.Module]]
    """Class of the model of a cell."""

    def __init__(self, spec: CellSpec, corpus: ExampleCorpus) -> None:
        super().__init__(spec, type(self).built(spec, corpus))
        self.corpus = corpus
        self._right = 0
        self._read = 0
        """Number of examples that an evaluation has read."""

    @classmethod
    def built(cls, spec: CellSpec, corpus: ExampleCorpus) -> nn.Module:
        """Return the model of a cell with its corpus."""
        return cls.build(spec)

    @classmethod
    def model_of(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> nn.Module:
        return cls.build(spec)

    @classmethod
    def batches(cls, spec: CellSpec, corpus: ExampleCorpus, seed: int) -> Batches:
        size = examples_of_a_batch(spec.training, corpus)
        return Batches.of(lambda split: ExampleBatches(corpus.splits[split], size, seed))

    def loss(self, batch: ExampleBatch) -> Tensor:
        logits = self.model(**batch.inputs).flatten(0, 1).float()
        smoothing = self.spec.training.label_smoothing
        return functional.cross_entropy(logits, batch.targets.flatten(), label_smoothing=smoothing)

    def evaluate(self, batch: ExampleBatch, split: Split) -> None:
        logits = self.model(**batch.inputs)
        nats = functional.cross_entropy(logits.flatten(0, 1).float(), batch.targets.flatten(), reduction="none")
        answers = batch.targets != NO_ANSWER
        self.add(nats, int(answers.sum()))
        examples = (self._read + torch.arange(len(answers), device=answers.device))[:, None].expand(answers.shape)
        right = logits.argmax(-1) == batch.targets
        self.by_document.add(examples[answers], nats=nats.view_as(answers)[answers], right=right[answers])
        self._read += len(answers)
        self.measure(batch, logits, batch.targets)

    def test_documents(self) -> Documents:
        return blocks(len(self.corpus.splits[Split.TEST]))

    def _start(self) -> None:
        super()._start()
        self._right = self._read = 0

    def measure(self, batch: ExampleBatch, logits: Tensor, targets: Tensor) -> None:
        """Add to the further counts of the task: logits (B, T, V), targets (B, T)."""
        right, answers = logits.argmax(-1) == targets, targets != NO_ANSWER
        self._right += int(right.sum())
        for respect, values in batch.slices.items():
            self.slices.add(respect, values[answers], 100 * right[answers])

    def summarise(self, split: Split) -> dict[str, float]:
        whole = {"loss": super().summarise(split)["loss"], "accuracy": 100 * self._right / self._targets}
        return whole | (self._accuracy_by_slice() if split is Split.TEST else {})

    def _accuracy_by_slice(self) -> dict[str, float]:
        """Return the accuracy of each slice that has targets."""
        return {f"accuracy/{name}": percent for name, percent in self.slices.means().items()}

    def definitions(self, split: Split) -> dict[str, str]:
        whole = {
            "loss": f"mean over {self.unit} of -ln p, in nats, without label smoothing",
            "accuracy": f"{self.unit} for which the likeliest class is the right one, in percent",
        }
        by_slice = self._accuracy_by_slice() if split is Split.TEST else {}
        return whole | {name: f"of those with {name.partition('/')[2]}: {whole['accuracy']}" for name in by_slice}

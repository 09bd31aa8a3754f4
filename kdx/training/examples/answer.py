"""Answers in generated sequences: a decoder reads tokens one by one and predicts an answer after some of them."""

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from kdx.data.batching import ExampleBatch
from kdx.data.examples import NO_ANSWER
from kdx.data.generated import ExampleCorpus
from kdx.grid.spec import CellSpec
from kdx.models.language import LanguageModel
from kdx.training.examples import ExamplesModule
from kdx.vocabulary import Split


class AnswerModule(ExamplesModule):
    """The answers in a generated sequence, and how many sequences have all of them right."""

    name = "answer"
    metrics: ClassVar[Mapping[str, tuple[str, str, str]]] = {
        "accuracy": ("max", "percent", "target"),
        "exact_match": ("max", "percent", "example"),
        "loss": ("min", "nats", "target"),
    }
    attentions = ("decoder-self",)
    embeddings = ("separate", "tied")

    unit = "answers"

    @classmethod
    def built(cls, spec: CellSpec, corpus: ExampleCorpus) -> nn.Module:
        return LanguageModel(spec, corpus.classes)

    @classmethod
    def model_of(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> nn.Module:
        return LanguageModel(spec, len(state["input.embedding.weight"]))

    def _start(self) -> None:
        super()._start()
        self._sequences = self._all_right = 0

    def measure(self, batch: ExampleBatch, logits: Tensor, targets: Tensor) -> None:
        super().measure(batch, logits, targets)
        right = (logits.argmax(-1) == targets) | (targets == NO_ANSWER)
        self._all_right += int(right.all(1).sum())
        self._sequences += len(right)

    def summarise(self, split: Split) -> dict[str, float]:
        return {**super().summarise(split), "exact_match": 100 * self._all_right / self._sequences}

    def definitions(self, split: Split) -> dict[str, str]:
        return {
            **super().definitions(split),
            "exact_match": "sequences of whose answers, each told after the right ones before it, all are right, in "
            "percent",
        }

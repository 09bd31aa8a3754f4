"""The base class of the two tasks that predict tokens of text, by a softmax that may be adaptive."""

import math
from collections.abc import Mapping
from typing import Any, cast

from torch import Tensor, nn

from kdx.data.parallel import ParallelCorpus
from kdx.data.stream import StreamCorpus
from kdx.data.vocabulary import PADDING
from kdx.grid.spec import CellSpec
from kdx.models.softmax import Softmax
from kdx.tasks import TASKS
from kdx.training.module import TaskModule, exponential
from kdx.vocabulary import Split


class TextModule(TaskModule):
    """Cross-entropy of each token, padding aside."""

    corpus: ParallelCorpus | StreamCorpus

    def __init__(self, spec: CellSpec, model: nn.Module, corpus: ParallelCorpus | StreamCorpus) -> None:
        super().__init__(spec, model)
        self.corpus = corpus

    def hidden_and_targets(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return the output of the last layer (B, T, M), and the tokens (B, T) to predict from it."""
        raise NotImplementedError

    @property
    def _softmax(self) -> Softmax:
        return cast(Softmax, self.model.output)

    def loss(self, batch: Any) -> Tensor:
        return self._softmax.loss(*self.hidden_and_targets(batch), self.spec.training.label_smoothing)

    def read(self, batch: Any) -> Tensor:
        """Add a batch to the sums of an evaluation; return -ln p of each target (B, T), 0 for padding."""
        hidden, targets = self.hidden_and_targets(batch)
        nats = self._softmax.nats(hidden, targets)
        self.add(nats, int((targets != PADDING).sum()))
        return nats.view_as(targets)

    def evaluate(self, batch: Any, split: Split) -> None:
        nats = self.read(batch)
        if split is Split.TEST:
            self.measure(batch, nats)

    def measure(self, batch: Any, nats: Tensor) -> None:
        """Add a batch of a test, its targets' -ln p (B, T), to the slices, if the task has any."""

    def summarise(self, split: Split) -> dict[str, float]:
        # An evaluation reads every token of its split once, so these are the bytes that were read.
        facts = self.corpus.facts
        nats = self._nats.item() + facts[f"{split}/spelling_nats"]
        by_slice = {f"perplexity/{name}": exponential(loss) for name, loss in self.slices.means().items()}
        whole = super().summarise(split) | {"bits_per_byte": nats / math.log(2) / facts[f"{split}/bytes"]}
        return whole | by_slice

    def definitions(self, split: Split) -> dict[str, str]:
        return {
            "bits_per_byte": "(summed -ln p + nats that spell what each unknown token stands for) / ln 2 / bytes of "
            "the text, its words with one space between them and one line feed a line; spelled byte by byte with the "
            "frequencies in the training text's words, 256 bytes and an end mark, each count + 1"
        }

    def definitions_by_slice(self, whole: Mapping[str, str]) -> dict[str, str]:
        """Return the definition of each metric by slice of the last pass, given the definitions for the whole test."""
        return {
            f"{metric}/{name}": f"of targets with {name}, the {slicing.title}: {whole[metric]}"
            for slicing in TASKS.definition(self.spec.task).slicings
            for name in self.slices.means()
            if name.startswith(f"{slicing.respect}=")
            for metric in slicing.metrics
            if metric in whole
        }

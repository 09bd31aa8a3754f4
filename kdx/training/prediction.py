"""Sequence prediction: cross-entropy of the next token of a stream."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from kdx.data.batching import StreamBatch, StreamBatches
from kdx.data.corpus import HELD_OUT
from kdx.data.documents import Documents, of_stream
from kdx.data.reading import extent, stream_length
from kdx.data.stream import StreamCorpus
from kdx.data.vocabulary import END, PADDING, Vocabulary
from kdx.grid.reading import reading_of
from kdx.grid.spec import CellSpec
from kdx.models.language import LanguageModel
from kdx.models.memory import Memory
from kdx.training.module import Batches, exponential
from kdx.training.text import TextModule
from kdx.vocabulary import Split


class PredictionModule(TextModule):
    """Decoder-only sequence prediction: each token from the tokens before it in its segment."""

    name = "prediction"
    reads = "plain text"
    metrics: ClassVar[Mapping[str, tuple[str, str, str]]] = {
        "perplexity": ("min", "perplexity", "token"),
        "loss": ("min", "nats", "token"),
        "word_perplexity": ("min", "perplexity", "word"),
        "bits_per_byte": ("min", "bits", "byte"),
    }
    slicings = (
        ("context", "number of tokens that a token is predicted from, memory included", ("perplexity",)),
        ("frequency", "number of times that a token occurs in the training text", ("perplexity",)),
    )
    attentions = ("decoder-self",)
    embeddings = ("tied", "separate")
    settings = (
        "memory",
        "training.length",
        "evaluation.streams",
        "evaluation.length",
        "evaluation.memory",
        "model.cutoffs",
        "model.output_dropout",
    )

    texts = ("text",)
    model: LanguageModel
    corpus: StreamCorpus

    def __init__(self, spec: CellSpec, corpus: StreamCorpus) -> None:
        super().__init__(spec, LanguageModel(spec, corpus.vocabulary.size), corpus)
        # A validation during training must not touch the memory of training.
        self.remembered = {True: Memory(spec.memory), False: Memory(reading_of(spec).memory)}
        self._tokens_before = 0
        """Tokens of each stream that a test read before its next batch."""

    @classmethod
    def batches(cls, spec: CellSpec, corpus: StreamCorpus, seed: int) -> Batches:
        length, reading = spec.training.length, reading_of(spec)
        assert length is not None
        train = StreamBatches(corpus.splits[Split.TRAIN], spec.training.batch_tokens // length, length)
        read = {
            split: list(StreamBatches(corpus.splits[split], reading.streams, reading.length).in_order())
            for split in HELD_OUT
        }
        return Batches(train, read)

    @classmethod
    def model_of(cls, spec: CellSpec, state: Mapping[str, Tensor]) -> LanguageModel:
        return LanguageModel(spec, len(state["input.embedding.weight"]))

    def vocabulary(self, text: str) -> Vocabulary:
        return self.corpus.vocabulary

    def inputs(self, *texts: str) -> dict[str, Tensor]:
        (line,) = texts
        # A line follows the end mark of the line before it.
        return {"tokens": torch.tensor([[END, *self.corpus.vocabulary.encode(line)]])}

    def nats(self, *texts: Sequence[str]) -> tuple[float, int]:
        (lines,) = texts
        stream = [token for line in lines for token in (*self.corpus.vocabulary.encode(line), END)]
        self._start()
        for batch in StreamBatches(np.array(stream, np.int32), 1, reading_of(self.spec).length).in_order():
            self.read(batch)
        return self._nats.item(), self._targets

    def hidden_and_targets(self, batch: StreamBatch) -> tuple[Tensor, Tensor]:
        memory = self.remembered[self.training]
        if batch.begins:
            memory.layers = []
        return self.model.hidden(batch.inputs, memory if memory.length else None), batch.targets

    def snapshot(self) -> Callable[[], None]:
        before = {training: list(memory.layers) for training, memory in self.remembered.items()}

        def put_back() -> None:
            for training, layers in before.items():
                self.remembered[training].layers = list(layers)

        return put_back

    def measure(self, batch: StreamBatch, nats: Tensor) -> None:
        counted, length = batch.targets != PADDING, batch.targets.size(1)
        before = 0 if batch.begins else self._tokens_before
        self._tokens_before = before + length
        remembered = min(before, self.remembered[False].length)
        context = (remembered + torch.arange(1, length + 1, device=counted.device)).expand_as(counted)
        self.slices.add("context", context[counted], nats[counted])
        self.slices.add("frequency", self._frequencies[batch.targets[counted].cpu()], nats[counted])
        streams = torch.arange(len(counted), device=counted.device)[:, None]
        each = stream_length(len(self.corpus.splits[Split.TEST]), len(counted))
        tokens = streams * each + before + torch.arange(length, device=counted.device)
        self.by_document.add(tokens[counted], nats=nats[counted])

    def test_documents(self) -> Documents:
        return of_stream(self.corpus.splits[Split.TEST], self.corpus.vocabulary, self.corpus.title)

    @cached_property
    def _frequencies(self) -> Tensor:
        """The number of times that each token occurs in the training text, (V,)."""
        return torch.from_numpy(np.bincount(self.corpus.training, minlength=self.corpus.vocabulary.size))

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["memory"] = self.remembered[True].layers

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        super().on_load_checkpoint(checkpoint)
        self.remembered[True].layers = [layer.to(self.device) for layer in checkpoint["memory"]]

    def summarise(self, split: Split) -> dict[str, float]:
        metrics = super().summarise(split)
        # Summed nats over the number of words: comparable between tokenisations.
        metrics["word_perplexity"] = exponential(self._nats.item() / max(self.corpus.words[split], 1))
        return metrics

    def definitions(self, split: Split) -> dict[str, str]:
        unit = "word" if self.spec.data.vocabulary == "word" else "byte-pair token"
        reading = reading_of(self.spec)
        read = extent(len(self.corpus.splits[split]), reading)
        before = f"a memory of {read.memory}" if read.memory else "no memory"
        context = f"{reading.streams} streams in segments of {read.segment} tokens, {before}"
        loss = f"mean over {unit}s and one end mark a line of -ln p, in nats; {context}"
        whole = {
            "bits_per_byte": f"{super().definitions(split)['bits_per_byte']}; {context}",
            "loss": loss,
            "perplexity": f"exp of: {loss}",
            "word_perplexity": f"exp of (summed -ln p / words, one end mark a line counted as a word); {context}",
        }
        return whole | self.definitions_by_slice(whole)

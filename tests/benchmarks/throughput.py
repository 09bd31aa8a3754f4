"""Training in tokens per second: `kdx.training.run.train`, with all that it does besides, against a plain loop.

The plain loop has torch's own Transformer of the same size, brought to the same function (no dropout inside attention
and feed-forward, no closing norms), the same batches, loss, clipping and optimiser. It neither makes batches nor
records anything, and never asks what the loss is. Both go in turn in one process, with one thread; read the ratios. The
share of the matrix peak is of the products that the plain loop asks for, forward and backward, by either's time.

The text is random tokens, as many a sentence as Multi30k has.
"""

import math
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from kdx.attention.encodings import ENCODINGS
from kdx.data.arrays import TokenLists, Tokens
from kdx.data.batching import ParallelBatches, StreamBatches
from kdx.data.parallel import ParallelCorpus, ParallelText
from kdx.data.stream import StreamCorpus
from kdx.data.vocabulary import END, PADDING, SPECIAL, WordVocabulary
from kdx.grid.load import load_grid
from kdx.grid.spec import CellSpec
from kdx.models.language import LanguageModel
from kdx.models.translation import TranslationModel
from kdx.training import run
from kdx.training.recorder import Recorder
from kdx.training.schedule import rate_factor
from kdx.training.stopping import Stopped, StopRequest
from kdx.vocabulary import Split
from tests.benchmarks import matrix_peak


class Turns(NamedTuple):
    """How often both have a turn."""

    warm: int
    """Steps before the first."""
    steps: int
    """Steps in a turn."""
    rounds: int

    @property
    def total(self) -> int:
        """Steps of all."""
        return self.warm + self.rounds * self.steps


SCALES = {"mini": Turns(20, 5, 25), "small": Turns(2, 1, 8)}
"""Those of each scale of the presets."""
PAIRS, STREAM = 29_000, 400_000  # pairs of sentences as in Multi30k, and tokens
WORDS = 6000  # in the vocabulary of a preset that leaves the number to the text
LEAST = 0.95


def measure() -> dict[str, object]:
    """Tokens per second of both, and kdx's over the plain loop's: the medians of the rounds."""
    threads = torch.get_num_threads()
    try:
        result = {
            f"{task}-{scale}": measure_at(scale)
            for scale in SCALES
            for task, measure_at in (("translation", _translation), ("prediction", _prediction))
        }
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
    return {**result, "least": LEAST, "within": all(each["ratio"] >= LEAST for each in result.values())}


class PlainTranslation(nn.Module):
    """Vaswani et al. 2017 by torch's modules."""

    positions: Tensor

    def __init__(self, spec: CellSpec, size: int) -> None:
        super().__init__()
        model = spec.model
        self.embedding = nn.Embedding(size, model.width, padding_idx=PADDING)
        nn.init.normal_(self.embedding.weight, std=model.width**-0.5)
        self.transformer = nn.Transformer(
            model.width,
            model.heads,
            model.encoder_layers,
            model.decoder_layers,
            model.inner,
            model.dropout,
            batch_first=True,
        )
        _make_same_function(self.transformer)
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        self.scale, self.dropout = math.sqrt(model.width), nn.Dropout(model.dropout)
        self.register_buffer("positions", _sinusoids(model.width))

    def forward(self, source: Tensor, source_padding: Tensor, target: Tensor) -> Tensor:
        hidden = self.transformer(
            self._input(source),
            self._input(target),
            tgt_mask=_causal(target.size(1)),
            src_key_padding_mask=source_padding,
            memory_key_padding_mask=source_padding,
            tgt_is_causal=True,
        )
        return functional.linear(hidden, self.embedding.weight)

    def _input(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.embedding(tokens) * self.scale + self.positions[: tokens.size(1)])


class PlainPrediction(nn.Module):
    """The same with the encoder's modules under a causal mask."""

    positions: Tensor

    def __init__(self, spec: CellSpec, size: int) -> None:
        super().__init__()
        model = spec.model
        self.embedding = nn.Embedding(size, model.width, padding_idx=PADDING)
        nn.init.normal_(self.embedding.weight, std=model.width**-0.5)
        layer = nn.TransformerEncoderLayer(model.width, model.heads, model.inner, model.dropout, batch_first=True)
        self.transformer = nn.TransformerEncoder(layer, model.decoder_layers)
        _make_same_function(self.transformer)
        self.scale, self.dropout = math.sqrt(model.width), nn.Dropout(model.dropout)
        self.register_buffer("positions", _sinusoids(model.width))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.dropout(self.embedding(tokens) * self.scale + self.positions[: tokens.size(1)])
        hidden = self.transformer(x, mask=_causal(tokens.size(1)), is_causal=True)
        return functional.linear(hidden, self.embedding.weight)


def _make_same_function(transformer: nn.Module) -> None:
    for module in transformer.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            module.dropout.p = 0.0


def _causal(length: int) -> Tensor:
    return nn.Transformer.generate_square_subsequent_mask(length)


def _sinusoids(width: int) -> Tensor:
    return ENCODINGS["sinusoidal"](width, 0)(torch.arange(512))


class PlainLoop:
    """Steps of the plain loop over batches that lie ready: inputs, and the targets."""

    def __init__(self, spec: CellSpec, model: nn.Module, batches: Sequence[tuple[tuple[Tensor, ...], Tensor]]) -> None:
        self.model, self.batches, self.training = model, batches, spec.training
        self.optimizer = torch.optim.AdamW(
            model.parameters(), spec.training.learning_rate, spec.training.betas, spec.training.epsilon, fused=True
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: rate_factor(spec.training, step)
        )

    def steps(self, first: int, last: int) -> None:
        for inputs, targets in self.batches[first:last]:
            self.optimizer.zero_grad()
            self._pass(inputs, targets)
            assert self.training.clip is not None
            nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip)
            self.optimizer.step()
            self.scheduler.step()

    def operations(self, first: int, last: int) -> int:
        """Return the operations of the matrix products of these steps."""
        return sum(
            matrix_peak.operations(partial(self._pass, inputs, targets)) for inputs, targets in self.batches[first:last]
        )

    def _pass(self, inputs: tuple[Tensor, ...], targets: Tensor) -> None:
        loss = functional.cross_entropy(
            self.model(*inputs).flatten(0, 1),
            targets.flatten(),
            ignore_index=PADDING,
            label_smoothing=self.training.label_smoothing,
        )
        torch.autograd.backward(loss)


class Seconds(NamedTuple):
    elapsed: float
    busy: float
    """Seconds of the processor, without those of other programs."""


def now() -> Seconds:
    return Seconds(time.perf_counter(), time.process_time())


def since(start: Seconds) -> Seconds:
    return Seconds(*(after - before for after, before in zip(now(), start, strict=True)))


class InTurn(Recorder):
    """Lets the plain loop have its turn, and asks the run to stop after the last."""

    def __init__(self, plain: PlainLoop, turns: Turns, stop: StopRequest) -> None:
        self.plain, self.turns, self.stop = plain, turns, stop
        self.ours: list[Seconds] = []
        self.theirs: list[Seconds] = []
        self.at_peak: list[float] = []
        """Seconds that as many operations take at the matrix peak, in each round."""
        self.start = now()

    def progress(self, step: int, loss: float, gradient_norm: Any = None) -> None:
        warm, steps, rounds = self.turns
        if step < warm or (step - warm) % steps:
            return
        ours = since(self.start)
        # The plain loop need not fill what kdx has filled so that bits are the same.
        torch.use_deterministic_algorithms(False)
        start = now()
        self.plain.steps(max(0, step - steps), step)
        if step > warm:
            self.ours.append(ours)
            self.theirs.append(since(start))
            asked = self.plain.operations(step - steps, step)
            self.at_peak.append(matrix_peak.seconds_at_peak(asked))
        torch.use_deterministic_algorithms(True)
        self.stop.asked = len(self.ours) == rounds
        self.start = now()


class Stop(StopRequest):
    def listen(self) -> None:
        """Leaves the signals to this process."""


def _compared(
    spec: CellSpec, plain: PlainLoop, corpus: ParallelCorpus | StreamCorpus, turns: Turns
) -> dict[str, float]:
    kind = TranslationModel if isinstance(corpus, ParallelCorpus) else LanguageModel
    assert _size(plain.model) == _size(kind(spec, _vocabulary_size(spec))), "the two models are not of one size"
    stop = Stop()
    times = InTurn(plain, turns, stop)
    with (
        patch.object(run, "load_corpus", return_value=corpus),
        tempfile.TemporaryDirectory() as folder,
        suppress(Stopped),
    ):
        run.train(spec, 0, folder=Path(folder), recorder=times, stop=stop)
    tokens = sum(int((targets != PADDING).sum()) for _, targets in plain.batches[turns.warm :])
    ours, theirs = (median(each.elapsed for each in seconds) * turns.rounds for seconds in (times.ours, times.theirs))
    pairs = list(zip(times.ours, times.theirs, strict=True))
    return {
        "kdx": round(tokens / ours),
        "plain": round(tokens / theirs),
        "ratio": round(median(plain.elapsed / kdx.elapsed for kdx, plain in pairs), 3),
        "ratio by processor time": round(median(plain.busy / kdx.busy for kdx, plain in pairs), 3),
        **{
            f"share of the matrix peak, {name}": round(
                median(peak / one.busy for peak, one in zip(times.at_peak, seconds, strict=True)), 3
            )
            for name, seconds in (("kdx", times.ours), ("plain", times.theirs))
        },
    }


def _vocabulary_size(spec: CellSpec) -> int:
    assert spec.data.vocabulary_size is not None
    return spec.data.vocabulary_size


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def preset_of(name: str) -> CellSpec:
    """Its cell with the positions, the one softmax and the byte pairs of the plain loop, and without memory."""
    (planned,) = load_grid(f"presets/{name}").runs
    settled = {"position", "inject", "placement", "encoding", "value"}
    fields = planned.cell.spec.model_dump(by_alias=True, exclude=settled)
    fields["model"]["cutoffs"] = ()
    fields["data"] |= {"vocabulary": "bpe", "vocabulary_size": fields["data"]["vocabulary_size"] or WORDS}
    return CellSpec.model_validate(fields | {"position": "direct-sum", "memory": 0})


def _translation(scale: str) -> dict[str, float]:
    spec, turns = preset_of(f"translation-{scale}"), SCALES[scale]
    size = _vocabulary_size(spec)
    generator = np.random.default_rng(0)
    length = generator.normal(2.7, 0.3, PAIRS)
    source, target = (
        _lists(np.exp(length + generator.normal(0, 0.1, len(length))).astype(int).clip(3, 58), size, generator)
        for _ in range(2)
    )
    text = ParallelText(source, target, references=("",) * len(length))
    corpus = ParallelCorpus(
        _words(size),
        _words(size),
        dict.fromkeys(Split, text),
        "en",
        True,
        fingerprint="",
        unigram_loss=99.0,
        facts={},
    )
    batches = ParallelBatches(text, spec.training.batch_tokens, 0)
    ready = [batches.batch(step) for step in range(turns.total)]
    plain = [((batch.source, batch.source_padding, batch.target_in), batch.target_out) for batch in ready]
    return _compared(spec, PlainLoop(spec, PlainTranslation(spec, size), plain), corpus, turns)


def _prediction(scale: str) -> dict[str, float]:
    spec, turns = preset_of(f"prediction-{scale}"), SCALES[scale]
    size, length = _vocabulary_size(spec), spec.training.length
    assert length is not None
    stream = np.random.default_rng(0).integers(SPECIAL, size, STREAM, dtype=np.int32)
    corpus = StreamCorpus(
        _words(size),
        dict.fromkeys(Split, stream),
        stream,
        dict.fromkeys(Split, len(stream)),
        fingerprint="",
        unigram_loss=99.0,
        facts={},
    )
    batches = StreamBatches(stream, spec.training.batch_tokens // length, length)
    ready = [batches.batch(step) for step in range(turns.total)]
    plain = [((batch.inputs,), batch.targets) for batch in ready]
    return _compared(spec, PlainLoop(spec, PlainPrediction(spec, size), plain), corpus, turns)


def _words(size: int) -> WordVocabulary:
    return WordVocabulary([str(id) for id in range(SPECIAL, size)])


def _lists(lengths: np.ndarray, size: int, generator: np.random.Generator) -> TokenLists:
    """Sentences of so many words and an end mark."""
    offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
    flat: Tokens = generator.integers(SPECIAL, size, offsets[-1], dtype=np.int32)
    flat[offsets[1:] - 1] = END
    return TokenLists(flat, offsets)

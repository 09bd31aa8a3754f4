"""A model with the weights that a run was tested with."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn

from kdx.data.corpus import Corpus
from kdx.data.prepared import how_to_prepare
from kdx.data.vocabulary import UNKNOWN_WORD
from kdx.errors import KdxError, shortened
from kdx.grid.spec import CellSpec
from kdx.tasks import TASKS
from kdx.training.attention_weights import watched
from kdx.training.checkpoint import unpacked
from kdx.training.module import TaskModule, exponential

Lines = str | Sequence[str]
"""Lines of one text; a string is one line."""


@dataclass(frozen=True, repr=False)
class Trained:
    """A trained model. Methods that read text warn (`UserWarning`) of words outside the vocabulary, read as `<unk>`."""

    spec: CellSpec
    """The resolved cell."""
    model: nn.Module
    """The model, on the CPU and in evaluation mode."""
    corpus: Corpus | None
    """The corpus that it was trained on, with the vocabulary; None if that text is not on this machine."""

    def __repr__(self) -> str:
        parameters = sum(weights.numel() for weights in self.model.parameters())
        position = "+".join(self.spec.position) or "none"
        words = f"{self.spec.task}, kernel {self.spec.kernel}, position {position}"
        return f"<{type(self).__name__}: {words}, {parameters:,} parameters>"

    def translate(self, sentences: Lines, *, beam: int | None = None) -> list[str]:
        """Translate sentences of the source language, words with spaces between them as in the corpus.

        Args:
            sentences: one sentence per string.
            beam: hypotheses kept at each word; None for the beam of the cell's test.

        Returns:
            A translation for each, in the same order.

        Raises:
            KdxError: the text that the run was trained on, and so its vocabulary, is not on this machine.
            TypeError: the run's task is not translation.
        """
        lines = _lines(sentences)
        with torch.no_grad():
            translations = self._module.translate(lines, beam)
        self._warn_of_unknown(lines)
        return translations

    def classify(self, lines: Lines) -> list[dict[str, float]]:
        """Give each line its labels.

        Returns:
            For each line, label → probability, the likeliest first.

        Raises:
            KdxError: as `translate`.
            TypeError: the run's task gives text no labels.
        """
        read = _lines(lines)
        with torch.no_grad():
            labels = self._module.classify(read)
        self._warn_of_unknown(read)
        return labels

    def perplexity(self, *texts: Lines) -> float:
        """Return the exponential of the mean -ln p of a token, in nats, end marks counted.

        Args:
            texts: the lines of one text, if the run predicts; source and target sentences, if it translates.

        Raises:
            KdxError: as `translate`.
            TypeError: the run's task gives no text a probability, or takes another number of texts.
        """
        self._check(len(texts))
        read = [_lines(text) for text in texts]
        with torch.no_grad():
            nats, tokens = self._module.nats(*read)
        self._warn_of_unknown(*read)
        return exponential(nats / max(tokens, 1))

    def attention(self, *inputs: Tensor | Lines, **named: Tensor) -> dict[str, Tensor]:
        """Return every attention's normalised weights, by Eq. 2 as printed, while the model reads these inputs once.

        Args:
            inputs, named: the model's inputs as tensors; or one line of each text that it reads: source and target for
                translation, one line otherwise.

        Returns:
            Module name, such as `decoder.layers.0.self_attention` → (B, H, Tq, Tk), row i the weights of query i.

        Raises:
            KdxError: as `translate`, if lines of text are given.
            TypeError: the task reads no text, or another number of texts; or a text does not have exactly one line.
        """
        tensors = [value for value in inputs if isinstance(value, Tensor)]
        if len(tensors) < len(inputs):
            self._check(len(inputs))
            read = [_lines(value) for value in inputs if not isinstance(value, Tensor)]
            if any(len(lines) != 1 for lines in read):
                raise TypeError(f"attention is of one line of each text, not of {max(map(len, read))}")
            tensors, named = [], self._module.inputs(*(line for (line,) in read))
            self._warn_of_unknown(*read)
        attentions: dict[str, Tensor] = {}
        with torch.no_grad(), watched(self.model, lambda name, weights, _: attentions.update({name: weights})):
            self.model(*tensors, **named)
        return attentions

    def _check(self, given: int) -> None:
        wanted = self._module.texts
        if wanted and given != len(wanted):
            raise TypeError(f"task {self.spec.task} takes {len(wanted)} of text ({', '.join(wanted)}), not {given}")

    def _warn_of_unknown(self, *texts: Sequence[str]) -> None:
        for name, lines in zip(self._module.texts, texts, strict=False):
            vocabulary = self._module.vocabulary(name)
            if vocabulary is None:
                continue
            # The word <unk> is the token for unknown words itself; a corpus may contain it.
            words = [word for line in lines for word in line.split() if word != UNKNOWN_WORD]
            if unknown := [piece for word in words for piece in vocabulary.unknown(word)]:
                tokens = sum(len(vocabulary.encode(line)) for line in lines)
                warnings.warn(
                    f"{len(unknown)} of {tokens} tokens of the {name} are not in the vocabulary of"
                    f" `{self.spec.data.corpus}` and are read as {UNKNOWN_WORD}: {shortened(' '.join(unknown))}",
                    stacklevel=3,
                )

    @cached_property
    def _module(self) -> TaskModule:
        """The task around the model."""
        if self.corpus is None:
            raise KdxError(
                f"corpus `{self.spec.data.corpus}`, which gave the run its vocabulary, is not here",
                hint=f"{how_to_prepare(self.spec.data.corpus)}, with the text that the run had",
            )
        task: type[TaskModule] = TASKS[self.spec.task]
        module = task.of(self.spec, self.corpus)
        module.model = self.model
        return module.eval()


def _lines(text: Lines) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def model_of(spec: CellSpec, weights: bytes, place: Path) -> nn.Module:
    """Return the cell's model with these weights.

    Args:
        weights: content of a file that `CheckpointFiles` wrote as `best` or `average`.
        place: path of that file, for messages.

    Raises:
        KdxError: the file holds no weights, or the weights do not fit the model that this code builds for the cell.
    """
    try:
        state = unpacked(weights)
    except ValueError as error:
        raise KdxError(
            "this file holds no weights that kdx wrote, and nothing in it was run",
            place=str(place),
            hint="put the file back that kdx wrote, from a backup; else train the run again, into a new database",
        ) from error
    try:
        task: type[TaskModule] = TASKS[spec.task]
        model = task.model_of(spec, state)
        model.load_state_dict(state)
    except (AttributeError, KeyError, RuntimeError, TypeError) as error:
        raise KdxError(
            "these weights do not fit the model that this kdx builds for the cell",
            place=str(place),
            hint="use the kdx that trained it: kdx trace shows its version, code and commit",
        ) from error
    return model.eval()

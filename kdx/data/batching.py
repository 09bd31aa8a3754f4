"""Batches as pure functions of (seed, step), so that a run can go on from any step without replaying the ones before.

Letters: B sentences, streams or examples in a batch, Ts and Tt tokens of its longest source and target, T tokens of a
stream in one batch. A step counts batches from 0 over all epochs.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kdx.data.corpus import TokenLists, Tokens
from kdx.data.examples import Examples
from kdx.data.parallel import ParallelText
from kdx.data.reading import stream_length
from kdx.data.vocabulary import BEGIN, END, PADDING
from kdx.errors import KdxError


class ParallelBatch(NamedTuple):
    """Sentence pairs, padded on the right."""

    source: Tensor
    """(B, Ts)"""
    source_padding: Tensor
    """(B, Ts), True where there is no token."""
    target_in: Tensor
    """(B, Tt): begin, then the sentence."""
    target_out: Tensor
    """(B, Tt): the sentence, then end; what `target_in` is to predict."""
    index: Tensor  # type: ignore[assignment]  # a tuple's own `index` is of no use here
    """(B,): which pairs of the text these are."""


class ParallelBatches:
    """Pairs of like length together. Which pairs make a batch is fixed; an epoch shuffles the batches."""

    def __init__(self, text: ParallelText, batch_tokens: int, seed: int = 0) -> None:
        """Neither side of a batch has more than `batch_tokens` tokens, padding included, unless it is a single pair."""
        self._text = text
        self._seed = seed
        self._batches = by_length(text.sources.lengths, text.targets.lengths, batch_tokens)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._batches)

    def batch(self, step: int) -> ParallelBatch:
        """The batch of this step; each pair comes once an epoch."""
        epoch, place = divmod(step, len(self))
        return self._collate(self._batches[shuffled(len(self), self._seed, epoch)[place]])

    def in_order(self) -> Iterator[ParallelBatch]:
        """Every pair once, shortest targets first."""
        return map(self._collate, self._batches)

    def _collate(self, index: NDArray[np.int64]) -> ParallelBatch:
        source = padded(self._text.sources, index)
        target = padded(self._text.targets, index)
        begin = torch.full((len(index), 1), BEGIN)
        before = torch.cat([begin, target[:, :-1]], dim=1)
        return ParallelBatch(
            source=source,
            source_padding=source == PADDING,
            # The end token is predicted, never read.
            target_in=before.masked_fill(before == END, PADDING),
            target_out=target,
            index=torch.from_numpy(index),
        )


class StreamBatch(NamedTuple):
    """The same stretch of every stream."""

    inputs: Tensor
    """(B, T): the token before each target."""
    targets: Tensor
    """(B, T): the tokens to predict, in the order of the text; padding where a stream has ended."""
    begins: bool
    """Whether the streams begin anew here, so that nothing before is of this text."""


class StreamBatches:
    """A text cut into so many equally long streams, which are read side by side, `length` tokens a batch."""

    def __init__(self, stream: Tokens, streams: int, length: int) -> None:
        """Takes the tokens of the text."""
        self._stream, self._streams, self._length = stream, streams, length
        self._each = len(stream) // streams

    def __len__(self) -> int:
        """Batches in an epoch; what is left at the end of each stream, and of the text, is not in it."""
        return self._each // self._length

    def batch(self, step: int) -> StreamBatch:
        """The batch of this step. Within an epoch each row goes on where it ended in the batch before.

        Raises:
            KdxError: the text is too short for one batch.
        """
        if not len(self):
            raise KdxError(
                f"{len(self._stream)} tokens of training text do not fill {self._streams} streams of {self._length}",
                place="training.batch_tokens",
                hint="lower batch_tokens or length",
            )
        start = step % len(self) * self._length
        return _stretch(self._stream, self._streams, self._each, start, start + self._length)

    def in_order(self) -> Iterator[StreamBatch]:
        """For evaluation: read to the end, so that every token of the text is a target once."""
        each = stream_length(len(self._stream), self._streams)
        for start in range(0, each, self._length):
            yield _stretch(self._stream, self._streams, each, start, min(start + self._length, each))


class ExampleBatch(NamedTuple):
    """Examples that are no text."""

    inputs: dict[str, Tensor]
    """By the names of the model's arguments; B is the first dimension of each."""
    targets: Tensor
    """(B, T): the classes to be told."""


class ExampleBatches:
    """Examples of one size. An epoch shuffles them, and leaves out what would not fill a batch."""

    def __init__(self, examples: Examples, size: int, seed: int = 0) -> None:
        """Takes B, the examples in a batch."""
        self._examples = examples
        self._size = size
        self._seed = seed

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._examples) // self._size

    def batch(self, step: int) -> ExampleBatch:
        """The batch of this step; an example comes once an epoch at most.

        Raises:
            KdxError: there are fewer examples than a batch has.
        """
        if not len(self):
            raise KdxError(
                f"{len(self._examples)} training examples do not fill a batch of {self._size}",
                place="training.batch_tokens",
                hint="lower batch_tokens",
            )
        epoch, place = divmod(step, len(self))
        order = shuffled(len(self._examples), self._seed, epoch)
        return self._collate(order[place * self._size : (place + 1) * self._size])

    def in_order(self) -> Iterator[ExampleBatch]:
        """For evaluation: every example once."""
        for start in range(0, len(self._examples), self._size):
            yield self._collate(slice(start, start + self._size))

    def _collate(self, part: slice | NDArray[np.int64]) -> ExampleBatch:
        inputs = {name: _tensor(array[part]) for name, array in self._examples.inputs.items()}
        return ExampleBatch(inputs, _tensor(self._examples.targets[part]))


def _tensor(array: NDArray[Any]) -> Tensor:
    """Integers of any width become indices; what was mapped from a file is copied."""
    return torch.from_numpy(array.astype(np.int64) if array.dtype.kind in "iu" else array.copy())


def _stretch(stream: Tokens, streams: int, each: int, start: int, stop: int) -> StreamBatch:
    """Tokens `start` to `stop` of every stream, where a stream has `each` tokens."""
    inputs = np.full((streams, stop - start), PADDING, dtype=np.int64)
    targets = inputs.copy()
    for row in range(streams):
        first = row * each + start
        tokens = stream[first : row * each + stop]
        targets[row, : len(tokens)] = tokens
        # The very first token stands where a line begins, so an end token is what comes before it.
        inputs[row, : len(tokens)] = stream[first - 1 : first - 1 + len(tokens)] if first else [END, *tokens[:-1]]
    return StreamBatch(torch.from_numpy(inputs), torch.from_numpy(targets), start == 0)


def by_length(sources: NDArray[np.int64], targets: NDArray[np.int64], batch_tokens: int) -> list[NDArray[np.int64]]:
    """Pairs by (target length, source length, index), cut where one more would go over `batch_tokens` on a side."""
    # Stable, so the index comes last; and several times as fast on small integers as on large ones.
    order = np.lexsort([side.astype(np.min_scalar_type(side.max())) for side in (sources, targets)])
    shortest, longest = targets[order], np.maximum(sources, targets)[order]
    cuts = [0]
    while (start := cuts[-1]) < len(order):
        # No later pair has a shorter target, so no more than these can go together.
        most = max(1, batch_tokens // int(shortest[start]))
        width = np.maximum.accumulate(longest[start : start + most])
        fitting = int(np.count_nonzero(width * np.arange(1, len(width) + 1) <= batch_tokens))
        cuts.append(start + max(1, fitting))
    return np.split(order, cuts[1:-1])


@lru_cache(maxsize=2)
def shuffled(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The batches, or examples, of an epoch, shuffled."""
    key = hashlib.blake2b(json.dumps(["batches", seed, epoch]).encode(), digest_size=16).digest()
    # Of numpy's randomness only the raw bits of a bit generator are promised to stay the same across versions.
    return np.argsort(np.random.PCG64(int.from_bytes(key, "little")).random_raw(count), kind="stable")


def padded(lists: TokenLists, index: NDArray[np.int64]) -> Tensor:
    """These lists, padded on the right to the longest of them: (B, T)."""
    tokens = [lists[i] for i in index.tolist()]
    padded = np.full((len(tokens), max(map(len, tokens))), PADDING, dtype=np.int64)
    for row, ids in zip(padded, tokens, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(padded)

"""Batches as pure functions of (seed, step), so that a run can resume at any step without replaying earlier ones.

In shapes, B is the number of sentences, streams or examples in a batch, Ts and Tt are the tokens of its longest source
and target, and T is the tokens of a stream in one batch. A step counts batches from 0 over all epochs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kdx.data.arrays import TokenLists, Tokens
from kdx.data.examples import Examples, random_bits
from kdx.data.labelled import LabelledText
from kdx.data.parallel import ParallelText
from kdx.data.reading import stream_length
from kdx.data.vocabulary import BEGIN, END, PADDING


class ParallelBatch(NamedTuple):
    """Sentence pairs, padded on the right."""

    source: Tensor
    """(B, Ts)"""
    source_padding: Tensor
    """(B, Ts), True where there is no token."""
    target_in: Tensor
    """(B, Tt): begin, then the sentence."""
    target_out: Tensor
    """(B, Tt): the sentence, then end; the targets of `target_in`."""
    index: Tensor  # type: ignore[assignment]  # a tuple's own `index` is not needed here
    """(B,): indices of the pairs in the text."""


class LabelledBatch(NamedTuple):
    """Lines, padded on the right."""

    tokens: Tensor
    """(B, T)"""
    padding: Tensor
    """(B, T), True where there is no token."""
    labels: Tensor
    """(B,)"""
    index: Tensor  # type: ignore[assignment]  # a tuple's own `index` is not needed here
    """(B,): indices of the lines in the text."""


_Batch = TypeVar("_Batch")


class BatchesByLength(ABC, Generic[_Batch]):
    """Batches of items of similar length. The items of a batch are fixed; an epoch shuffles the batches."""

    def __init__(self, *sides: TokenLists, batch_tokens: int, seed: int) -> None:
        """Limit each side of a batch to `batch_tokens` tokens, padding included, except for a single longer item.

        Args:
            sides: the token lists of the items, one for each side; the length of the last one counts first.
        """
        self._seed = seed
        self._batches = _by_length([side.lengths for side in sides], batch_tokens)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return len(self._batches)

    def batch(self, step: int) -> _Batch:
        """Return the batch of this step; each item occurs once in an epoch."""
        epoch, place = divmod(step, len(self))
        return self._collate(self._batches[shuffled(len(self), self._seed, epoch)[place]])

    def in_order(self) -> Iterator[_Batch]:
        """Yield every item once, the shortest first."""
        return map(self._collate, self._batches)

    @abstractmethod
    def _collate(self, index: NDArray[np.int64]) -> _Batch:
        """Return the batch of the items with these indices."""


class ParallelBatches(BatchesByLength[ParallelBatch]):
    """Batches of pairs, with the shortest targets first."""

    def __init__(self, text: ParallelText, batch_tokens: int, seed: int = 0) -> None:
        super().__init__(text.sources, text.targets, batch_tokens=batch_tokens, seed=seed)
        self._text = text

    def _collate(self, index: NDArray[np.int64]) -> ParallelBatch:
        source = _padded(self._text.sources, index)
        target = _padded(self._text.targets, index)
        begin = torch.full((len(index), 1), BEGIN)
        before = torch.cat([begin, target[:, :-1]], dim=1)
        return ParallelBatch(
            source=source,
            source_padding=source == PADDING,
            # The end token is predicted but never an input.
            target_in=before.masked_fill(before == END, PADDING),
            target_out=target,
            index=torch.from_numpy(index),
        )


class LabelledBatches(BatchesByLength[LabelledBatch]):
    """Batches of lines with their labels."""

    def __init__(self, text: LabelledText, batch_tokens: int, seed: int = 0) -> None:
        super().__init__(text.lines, batch_tokens=batch_tokens, seed=seed)
        self._text = text

    def _collate(self, index: NDArray[np.int64]) -> LabelledBatch:
        tokens = _padded(self._text.lines, index)
        labels = torch.from_numpy(self._text.labels[index].astype(np.int64))
        return LabelledBatch(tokens, tokens == PADDING, labels, torch.from_numpy(index))


class StreamBatch(NamedTuple):
    """The same segment of every stream."""

    inputs: Tensor
    """(B, T): the token before each target."""
    targets: Tensor
    """(B, T): the tokens to predict, in the order of the text; padding where a stream has ended."""
    begins: bool
    """Whether the streams start here, so no earlier batch is of this text."""


class StreamBatches:
    """A text cut into equally long streams, which are read in parallel, `length` tokens in each batch."""

    def __init__(self, stream: Tokens, streams: int, length: int) -> None:
        """Cuts `stream`, the tokens of the text."""
        self._stream, self._streams, self._length = stream, streams, length
        self._each = len(stream) // streams

    def __len__(self) -> int:
        """The number of batches in an epoch, without the rest at the end of each stream and of the text."""
        return self._each // self._length

    def batch(self, step: int) -> StreamBatch:
        """Return the batch of this step. Within an epoch each row continues where it ended in the batch before."""
        start = step % len(self) * self._length
        return _stretch(self._stream, self._streams, self._each, start, start + self._length)

    def in_order(self) -> Iterator[StreamBatch]:
        """Yield all batches for an evaluation, up to the end, so that every token of the text is a target once."""
        each = stream_length(len(self._stream), self._streams)
        for start in range(0, each, self._length):
            yield _stretch(self._stream, self._streams, each, start, min(start + self._length, each))


class ExampleBatch(NamedTuple):
    """Examples that are not text."""

    inputs: dict[str, Tensor]
    """Argument of the model → tensor, whose first dimension is B."""
    targets: Tensor
    """(B, T): the classes to predict."""
    slices: dict[str, Tensor]
    """(B, T) each: the difficulty of each target, as in `kdx.data.examples.Examples`."""


class ExampleBatches:
    """Batches of `size` examples. An epoch shuffles the examples and leaves out the rest that does not fill a batch."""

    def __init__(self, examples: Examples, size: int, seed: int = 0) -> None:
        """Make batches of B = `size` examples."""
        self._examples = examples
        self._size = size
        self._seed = seed

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return len(self._examples) // self._size

    def batch(self, step: int) -> ExampleBatch:
        """Return the batch of this step; an example occurs at most once in an epoch."""
        epoch, place = divmod(step, len(self))
        order = shuffled(len(self._examples), self._seed, epoch)
        return self._collate(order[place * self._size : (place + 1) * self._size])

    def in_order(self) -> Iterator[ExampleBatch]:
        """Yield all batches for an evaluation, with every example once."""
        for start in range(0, len(self._examples), self._size):
            yield self._collate(slice(start, start + self._size))

    def _collate(self, part: slice | NDArray[np.int64]) -> ExampleBatch:
        inputs = {name: _tensor(array[part]) for name, array in self._examples.inputs.items()}
        slices = {name: _tensor(array[part]) for name, array in self._examples.slices.items()}
        return ExampleBatch(inputs, _tensor(self._examples.targets[part]), slices)


def _tensor(array: NDArray[Any]) -> Tensor:
    """Convert integers of any width to indices, and copy arrays that are mapped from a file."""
    return torch.from_numpy(array.astype(np.int64) if array.dtype.kind in "iu" else array.copy())


def _stretch(stream: Tokens, streams: int, each: int, start: int, stop: int) -> StreamBatch:
    """Return tokens `start` to `stop` of every stream; a stream has `each` tokens."""
    inputs = np.full((streams, stop - start), PADDING, dtype=np.int64)
    targets = inputs.copy()
    for row in range(streams):
        first = row * each + start
        tokens = stream[first : row * each + stop]
        targets[row, : len(tokens)] = tokens
        # The first token of the text starts a line, so an end token is put before it.
        inputs[row, : len(tokens)] = stream[first - 1 : first - 1 + len(tokens)] if first else [END, *tokens[:-1]]
    return StreamBatch(torch.from_numpy(inputs), torch.from_numpy(targets), start == 0)


def _by_length(sides: Sequence[NDArray[np.int64]], batch_tokens: int) -> list[NDArray[np.int64]]:
    """Sort items by (last length, …, first length, index) and cut before a side would exceed `batch_tokens`."""
    # The sort is stable, so the index comes last; small integers make it several times as fast.
    order = np.lexsort([side.astype(np.min_scalar_type(side.max())) for side in sides])
    shortest, longest = sides[-1][order], np.max(sides, axis=0)[order]
    cuts = [0]
    while (start := cuts[-1]) < len(order):
        # No later item has a shorter last side, so at most these fit together.
        most = max(1, batch_tokens // int(shortest[start]))
        width = np.maximum.accumulate(longest[start : start + most])
        fitting = int(np.count_nonzero(width * np.arange(1, len(width) + 1) <= batch_tokens))
        cuts.append(start + max(1, fitting))
    return np.split(order, cuts[1:-1])


@lru_cache(maxsize=2)
def shuffled(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Return the order of the batches, or examples, of an epoch."""
    return np.argsort(random_bits(["batches", seed, epoch], count), kind="stable")


def _padded(lists: TokenLists, index: NDArray[np.int64]) -> Tensor:
    """Return these lists as a tensor (B, T), padded on the right to the longest of them."""
    tokens = [lists[i] for i in index.tolist()]
    padded = np.full((len(tokens), max(map(len, tokens))), PADDING, dtype=np.int64)
    for row, ids in zip(padded, tokens, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(padded)

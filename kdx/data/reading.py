"""Checks that a text is long enough for a cell: for a batch in training, for segments and memories in evaluations."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kdx.data.corpus import HELD_OUT, Corpus
from kdx.data.generated import ExampleCorpus
from kdx.data.stream import StreamCorpus
from kdx.errors import KdxError
from kdx.grid.reading import Reading, reading_of
from kdx.grid.sections import Training
from kdx.grid.spec import CellSpec
from kdx.vocabulary import Split


class Extent(NamedTuple):
    """Lengths in the longest stream of a split, in tokens."""

    stream: int
    segment: int
    """Length of the longest segment."""
    memory: int
    """The longest memory that a segment has."""
    context: int
    """The longest context of a token: earlier tokens of its segment, and the memory."""


def extent(tokens: int, reading: Reading) -> Extent:
    """Return the lengths for a split of n tokens."""
    stream = stream_length(tokens, reading.streams)
    last = (stream - 1) // reading.length * reading.length
    # The last segment may be short; of the full ones, the last has the longest memory.
    starts = {last, max(0, last - reading.length)}
    return Extent(
        stream=stream,
        segment=min(reading.length, stream),
        memory=min(reading.memory, last),
        context=max(min(reading.length, stream - start) + min(reading.memory, start) for start in starts),
    )


def stream_length(tokens: int, streams: int) -> int:
    """Return the tokens of each stream if no text is left out; the last streams may be shorter."""
    return -(-tokens // streams)


def data_facts(spec: CellSpec, corpus: Corpus) -> Mapping[str, Any]:
    """Return the facts of a cell's corpus and, for a stream, how evaluations read it."""
    if not isinstance(corpus, StreamCorpus):
        return corpus.facts
    reading = reading_of(spec)
    settings = {f"reading/{name}": value for name, value in reading._asdict().items()}
    read = {f"{split}/longest_context": longest_context(spec, corpus, split) for split in HELD_OUT}
    return {**corpus.facts, **settings, **read}


def longest_context(spec: CellSpec, corpus: Corpus, split: Split) -> int | None:
    """Return the largest number of tokens that a token of a split is predicted from; None if no stream is read."""
    if not isinstance(corpus, StreamCorpus):
        return None
    return extent(len(corpus.splits[split]), reading_of(spec)).context


def check_batch(spec: CellSpec, corpus: Corpus) -> None:
    """Refuse a training text, or examples, too few to fill one batch.

    Raises:
        KdxError: `training.batch_tokens` is too large.
    """
    training, place = spec.training, "training.batch_tokens"
    if isinstance(corpus, StreamCorpus):
        assert training.length is not None
        tokens, streams = len(corpus.splits[Split.TRAIN]), training.batch_tokens // training.length
        if tokens < streams * training.length:
            problem = f"{tokens} tokens of training text do not fill {streams} streams of {training.length}"
            raise KdxError(problem, place=place, hint="lower batch_tokens or length, or take more text")
    elif isinstance(corpus, ExampleCorpus):
        examples, size = len(corpus.splits[Split.TRAIN]), examples_of_a_batch(training, corpus)
        if examples < size:
            problem = f"{examples} training examples do not fill a batch of {size}"
            raise KdxError(problem, place=place, hint="lower batch_tokens, or take more examples")


def examples_of_a_batch(training: Training, corpus: ExampleCorpus) -> int:
    """Return the number of examples in a training batch."""
    return max(1, training.batch_tokens // corpus.tokens)


def check_reading(
    spec: CellSpec, corpus: Corpus, *, splits: Sequence[Split] = HELD_OUT, text: str | None = None
) -> None:
    """Refuse a length or memory of the cell's evaluation that the text cannot fill; those of training are not checked.

    Args:
        splits: splits that are read.
        text: name of the corpus in messages; None for its name in the cell.

    Raises:
        KdxError: `evaluation.length` or `evaluation.memory` is more than these splits allow.
    """
    if not isinstance(corpus, StreamCorpus):
        return
    reading = reading_of(spec)
    tokens = {split: len(corpus.splits[split]) for split in splits}
    shortest = min(splits, key=tokens.__getitem__)
    longest = extent(tokens[shortest], reading)
    in_streams = (
        f"the {shortest} text of `{text or spec.data.corpus}` has {tokens[shortest]:,} tokens in {reading.streams:,} "
    )
    in_streams += f"streams, {longest.stream:,} in each"
    if spec.evaluation.length is not None and longest.segment < reading.length:
        fitting = tokens[shortest] // reading.length
        raise KdxError(
            f"segments of {reading.length:,} tokens, but {in_streams}",
            place="evaluation.length",
            allowed=f"at most {longest.stream:,}",
            hint=_fewer(fitting),
        )
    if spec.evaluation.memory is not None and longest.memory < reading.memory:
        raise KdxError(
            f"a memory of {reading.memory:,} tokens, but {in_streams}, read in segments of {longest.segment:,}",
            place="evaluation.memory",
            allowed=f"at most {longest.memory:,}",
            hint=_fewer(tokens[shortest] // (-(-reading.memory // reading.length) * reading.length + 1)),
        )


def _fewer(streams: int) -> str:
    """Return the hint to read a number of streams, each of which would be long enough."""
    return f"read fewer streams: evaluation.streams: {streams}" if streams else "take a longer text"

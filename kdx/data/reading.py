"""How much of a stream an evaluation reads at once, since a short text does not fill long segments or memories."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kdx.data.corpus import HELD_OUT, Corpus
from kdx.data.stream import StreamCorpus
from kdx.errors import KdxError
from kdx.grid.spec import CellSpec


class Reading(NamedTuple):
    """How a stream is cut for an evaluation."""

    streams: int
    """Number of streams that are read in parallel."""
    length: int
    """Tokens of each stream in a batch."""
    memory: int
    """Earlier tokens that stay visible."""


class Extent(NamedTuple):
    """Lengths in the longest stream of a split, in tokens."""

    stream: int
    segment: int
    """The length of the longest segment."""
    memory: int
    """The longest memory that a segment has."""
    context: int
    """The longest context of a token: earlier tokens of its segment, and the memory."""


def reading_of(spec: CellSpec) -> Reading:
    """How validation and test read a stream, for a cell whose task reads streams."""
    evaluation, training = spec.evaluation, spec.training
    assert training.length is not None
    return Reading(
        streams=evaluation.streams or training.batch_tokens // training.length,
        length=evaluation.length or training.length,
        memory=spec.memory if evaluation.memory is None else evaluation.memory,
    )


def extent(tokens: int, reading: Reading) -> Extent:
    """The lengths for a split of so many tokens."""
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
    """Tokens of each stream if no text is left out; the last streams may be shorter."""
    return -(-tokens // streams)


def data_facts(spec: CellSpec, corpus: Corpus) -> Mapping[str, Any]:
    """The facts of a cell's corpus, and for a stream also how evaluations read it."""
    if not isinstance(corpus, StreamCorpus):
        return corpus.facts
    reading = reading_of(spec)
    asked = {f"reading/{name}": value for name, value in reading._asdict().items()}
    read = {f"{split}/longest_context": extent(len(corpus.splits[split]), reading).context for split in HELD_OUT}
    return {**corpus.facts, **asked, **read}


def check_reading(spec: CellSpec, corpus: Corpus) -> None:
    """Refuses a length or memory of the cell's evaluation that its text cannot fill; those from training are allowed.

    Raises:
        KdxError: `evaluation.length` or `evaluation.memory` is more than the validation or the test text gives.
    """
    if not isinstance(corpus, StreamCorpus):
        return
    reading = reading_of(spec)
    tokens = {split: len(corpus.splits[split]) for split in HELD_OUT}
    shortest = min(HELD_OUT, key=tokens.__getitem__)
    longest = extent(tokens[shortest], reading)
    in_streams = f"the {shortest} text of `{spec.data.corpus}` has {tokens[shortest]:,} tokens in {reading.streams:,} "
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
    """The hint to read so many streams, each of which would be long enough."""
    return f"read fewer streams: evaluation.streams: {streams}" if streams else "take a longer text"

"""How an evaluation cuts a stream of text."""

from typing import NamedTuple

from kdx.grid.spec import CellSpec


class Reading(NamedTuple):
    """How a stream is cut for an evaluation."""

    streams: int
    """Read side by side."""
    length: int
    """Tokens of each in a batch."""
    memory: int
    """Tokens before them that stay visible."""


def reading_of(spec: CellSpec) -> Reading:
    """How validation and test read a stream, of a cell whose task reads streams."""
    evaluation, training = spec.evaluation, spec.training
    assert training.length is not None
    return Reading(
        streams=evaluation.streams or training.batch_tokens // training.length,
        length=evaluation.length or training.length,
        memory=spec.memory if evaluation.memory is None else evaluation.memory,
    )

"""The documents of a test, between which its scores differ by what happened to be written.

A text whose articles begin with a title is divided there. Any other test has no documents, so it is cut into as many
blocks of neighbouring items: tokens of a stream, sentence pairs, lines or examples. No item is divided.
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdx.data.arrays import Tokens
from kdx.data.vocabulary import END, Vocabulary

BLOCKS = 100
"""Number of blocks of a test without documents; more would hardly narrow an interval, and neighbours would be alike."""


class Documents(NamedTuple):
    """Which document each item of a test is in."""

    unit: str
    """What a document is, in the singular: `article` or `block`."""
    of_items: NDArray[np.int64]
    """(N,): the document of each item, counted from 0 and in the order of the test."""


def blocks(items: int) -> Documents:
    """`BLOCKS` blocks of nearly equal size, or one for each item where there are fewer."""
    return Documents("block", np.arange(items) * min(BLOCKS, items) // max(items, 1))


def of_stream(stream: Tokens, vocabulary: Vocabulary, title: str | None) -> Documents:
    """The articles of a text, or blocks of its tokens.

    Args:
        stream: its tokens, with an end token after each line.
        title: regular expression of a title's words, with one space between them; None if the text has no titles. A
            line is a title only at the beginning of the text or after an empty line.
    """
    if title is not None:
        begins = _titles(stream, vocabulary, re.compile(title))
        if len(begins) > 1:
            # What stands before the first title is counted with the first article.
            starts = np.zeros(len(stream), np.int64)
            starts[begins[1:]] = 1
            return Documents("article", np.cumsum(starts))
    return blocks(len(stream))


def _titles(stream: Tokens, vocabulary: Vocabulary, title: re.Pattern[str]) -> list[int]:
    """Where the lines begin that are titles."""
    begins, start, empty_before = [], 0, True
    for end in np.flatnonzero(np.asarray(stream) == END).tolist():
        line = " ".join(vocabulary.decode(stream[start:end].tolist()).split())
        if empty_before and title.fullmatch(line):
            begins.append(start)
        start, empty_before = end + 1, not line
    return begins

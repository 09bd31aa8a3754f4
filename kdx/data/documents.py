"""The documents of a test; scores vary between them, so they give the error of a score.

A text whose articles start with a title is divided there. Any other test has no documents, so it is cut into blocks of
neighbouring items: tokens of a stream, sentence pairs, lines or examples. No item is divided.
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
    """The document of each item of a test."""

    unit: str
    """The kind of document, in the singular: `article` or `block`."""
    of_items: NDArray[np.int64]
    """(N,): the document of each item, counted from 0 and in the order of the test."""


def blocks(items: int) -> Documents:
    """Return `BLOCKS` blocks of nearly equal size, or one for each item if there are fewer items."""
    return Documents("block", np.arange(items) * min(BLOCKS, items) // max(items, 1))


def of_stream(stream: Tokens, vocabulary: Vocabulary, title: str | None) -> Documents:
    """Return the articles of a text, or blocks of its tokens.

    Args:
        stream: tokens of the text, with an end token after each line.
        title: regular expression of a title's words, with one space between them; None if the text has no titles. A
            line is a title only at the beginning of the text or after an empty line.
    """
    if title is not None:
        begins = _titles(stream, vocabulary, re.compile(title))
        if len(begins) > 1:
            # Text before the first title counts as part of the first article.
            starts = np.zeros(len(stream), np.int64)
            starts[begins[1:]] = 1
            return Documents("article", np.cumsum(starts))
    return blocks(len(stream))


def _titles(stream: Tokens, vocabulary: Vocabulary, title: re.Pattern[str]) -> list[int]:
    """Return the index of the first token of each line that is a title."""
    begins, start, empty_before = [], 0, True
    for end in np.flatnonzero(np.asarray(stream) == END).tolist():
        line = " ".join(vocabulary.decode(stream[start:end].tolist()).split())
        if empty_before and title.fullmatch(line):
            begins.append(start)
        start, empty_before = end + 1, not line
    return begins

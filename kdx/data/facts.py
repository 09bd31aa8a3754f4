"""Facts of prepared data that tell whether scores on it compare: recorded beside every run.

Perplexities compare where the text and the vocabulary are the same. What compares whatever the vocabulary is the length
of a code of the text, in bits per byte: the tokens by the model, and what each unknown token stands for spelled byte by
byte, so that the text can be read back from the code.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kdx.data.arrays import Counts
from kdx.data.examples import Examples
from kdx.data.vocabulary import UNKNOWN, Vocabulary, count_words

_SHORT = 16
"""Hexadecimal digits of a hash."""


class Spelling:
    """p(byte) of the words of a training text, over 256 bytes and the mark that ends a word; each count + 1."""

    def __init__(self, words: Mapping[str, int]) -> None:
        """`words`: how often each word of the training text occurs."""
        encoded = [word.encode() for word in words]
        times = np.fromiter(words.values(), np.int64, len(words))
        each = np.frombuffer(b"".join(encoded), np.uint8)
        counts = np.bincount(each, np.repeat(times, list(map(len, encoded))), minlength=256) + 1
        end = times.sum() + 1
        total = counts.sum() + end
        self._nats: list[float] = (-np.log(counts / total)).tolist()
        self._end = -math.log(end / total)

    def nats(self, piece: str) -> float:
        """-ln p of the bytes of a piece of text and of the mark that ends it."""
        return math.fsum(self._nats[byte] for byte in piece.encode()) + self._end


def vocabulary_facts(vocabulary: Vocabulary) -> dict[str, Any]:
    """How many tokens there are, and a hash of what each of them is."""
    told = json.dumps([vocabulary.kind, vocabulary.fields()], sort_keys=True)
    return {"vocabulary_size": vocabulary.size, "vocabulary": _hash(told.encode())}


def text_facts(lines: Iterable[str], vocabulary: Vocabulary, counts: Counts, spelling: Spelling) -> dict[str, Any]:
    """Of one split: its text, whatever a token is, and how much of it the vocabulary does not know.

    Args:
        counts: how often each token comes, end marks included.
    """
    text = _plain(lines)
    words = count_words([text])
    spelled = (times * spelling.nats(piece) for word, times in words.items() for piece in vocabulary.unknown(word))
    return {
        "text": _hash(text.encode()),
        "bytes": len(text.encode()),
        "tokens": int(counts.sum()),
        "unknown_rate": unknown_rate(counts),
        "spelling_nats": math.fsum(spelled),
    }


def text_hash(lines: Iterable[str]) -> str:
    """The `text` of `text_facts`."""
    return _hash(_plain(lines).encode())


def unknown_rate(counts: Counts) -> float:
    """The share of tokens that are unknown, of how often each token comes, end marks included."""
    return float(counts[UNKNOWN] / counts.sum())


def example_facts(examples: Examples) -> dict[str, Any]:
    """Of one split: how many examples, and a hash of them."""
    content = hashlib.sha256()
    for name, array in (*examples.inputs.items(), ("targets", examples.targets)):
        content.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        content.update(np.ascontiguousarray(array).data)
    return {"examples": len(examples), "content": content.hexdigest()[:_SHORT]}


def _plain(lines: Iterable[str]) -> str:
    """The text as its words alone make it: one space between two of them, one line feed a line."""
    return "".join(" ".join(line.split()) + "\n" for line in lines)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_SHORT]

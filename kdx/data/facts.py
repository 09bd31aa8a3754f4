"""Facts about prepared data that decide whether scores compare; they are recorded with every run.

Perplexities compare if the text and the vocabulary are the same. The length of a code of the text, in bits per byte,
compares for any vocabulary: it codes the tokens by the model, and the text of each unknown token byte by byte, so the
text can be decoded.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kdx.data.arrays import Counts
from kdx.data.corpus import HELD_OUT
from kdx.data.examples import Examples
from kdx.data.find_text import FoundText
from kdx.data.vocabulary import UNKNOWN, Vocabulary, count_words
from kdx.grid.sections import Data
from kdx.vocabulary import Split

_SHORT = 16
"""Number of hexadecimal digits of a hash."""


class Spelling:
    """p(byte) in the words of a training text, over 256 bytes and the end mark of a word; 1 is added to each count."""

    def __init__(self, words: Mapping[str, int]) -> None:
        """Take word of the training text → number of times that it occurs."""
        encoded = [word.encode() for word in words]
        times = np.fromiter(words.values(), np.int64, len(words))
        each = np.frombuffer(b"".join(encoded), np.uint8)
        counts = np.bincount(each, np.repeat(times, list(map(len, encoded))), minlength=256) + 1
        end = times.sum() + 1
        total = counts.sum() + end
        self._nats: list[float] = (-np.log(counts / total)).tolist()
        self._end = -math.log(end / total)

    def nats(self, piece: str) -> float:
        """Return -ln p of the bytes of a piece of text and of its end mark."""
        return math.fsum(self._nats[byte] for byte in piece.encode()) + self._end


def vocabulary_facts(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the number of tokens, and a hash of the vocabulary."""
    fields = json.dumps([vocabulary.kind, vocabulary.fields()], sort_keys=True)
    return {"vocabulary_size": vocabulary.size, "vocabulary": _hash(fields.encode())}


def predicted_facts(
    text: FoundText, data: Data, vocabulary: Vocabulary, counts: Mapping[Split, Counts], train: Mapping[str, int]
) -> dict[str, Any]:
    """Return facts about the text that is predicted.

    Args:
        counts: number of times that each token occurs, end marks included.
        train: word of the training text → number of times that it occurs.
    """
    spelling = Spelling(train)
    tokenised = "tokenised" if text.tokenised else "raw"
    facts = {**vocabulary_facts(vocabulary), "tokenisation": f"{data.vocabulary}, {tokenised} text"}
    for split in HELD_OUT:
        facts |= split_facts(text, split, vocabulary, counts[split], spelling)
    return facts


def split_facts(
    text: FoundText, split: Split, vocabulary: Vocabulary, counts: Counts, spelling: Spelling
) -> dict[str, Any]:
    """Return facts about one split of the text that is predicted: its hash, size and unknown tokens.

    Args:
        counts: number of times that each token occurs, end marks included.
    """
    plain = _plain(text.lines(split, text.suffixes[-1]))
    words = count_words([plain])
    spelled = (times * spelling.nats(piece) for word, times in words.items() for piece in vocabulary.unknown(word))
    return {
        f"{split}/text": _hash(plain.encode()),
        f"{split}/bytes": len(plain.encode()),
        f"{split}/tokens": int(counts.sum()),
        f"{split}/unknown_rate": float(counts[UNKNOWN] / counts.sum()),
        f"{split}/spelling_nats": math.fsum(spelled),
    }


def text_hash(lines: Iterable[str]) -> str:
    """Return the fact `text` of a split with these lines."""
    return _hash(_plain(lines).encode())


def example_facts(examples: Examples, split: Split) -> dict[str, Any]:
    """Return facts about one split: the number of examples, and a hash of them."""
    content = hashlib.sha256()
    for name, array in (*examples.inputs.items(), ("targets", examples.targets)):
        content.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        content.update(np.ascontiguousarray(array).data)
    return {f"{split}/examples": len(examples), f"{split}/content": content.hexdigest()[:_SHORT]}


def _plain(lines: Iterable[str]) -> str:
    """Return the text with one space between words and one line feed after each line."""
    return "".join(" ".join(line.split()) + "\n" for line in lines)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_SHORT]

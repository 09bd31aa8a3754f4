"""What a corpus is before it has tokens: lines of text, by split and suffix.

Parallel text has two suffixes, the language translated from and the one translated to; plain text has one, `txt`. A
line is what ends in a line feed, and a word is what stands between white space.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kdx.axes import Split

PLAIN = ("txt",)

Lines = Mapping[Split, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class GeneratedText:
    """A corpus that is made from a seed; its words stand between spaces, punctuation too."""

    suffixes: tuple[str, ...]
    train_lines: int
    """Lines of training text, unless the grid wants another number."""
    generate: Callable[[int, int], Lines]
    """(seed, training lines) → the text."""


@dataclass(frozen=True)
class KnownFile:
    """What a file of a known corpus holds, byte for byte."""

    lines: int
    sha256: str


@dataclass(frozen=True)
class KnownText:
    """A published corpus, which kdx recognises but does not contain."""

    suffixes: tuple[str, ...]
    folder: str
    """Name of the folder that the files lie in, where the archive holds more than one version of them."""
    licence: str
    tokenised: bool
    """Whether punctuation already stands apart, so that BLEU compares the words as they are."""
    files: Mapping[str, KnownFile]
    """By name, `train.de`."""


def file_names(suffixes: Sequence[str]) -> list[str]:
    """`train.de`, `train.en`, `valid.de`, …: one file a split and suffix."""
    return [f"{split}.{suffix}" for split in Split for suffix in suffixes]

"""What a corpus is before it has tokens: lines of text, by split and suffix.

Parallel text has two suffixes, the language translated from and the one translated to; plain text has one, `txt`. A
line is what ends in a line feed, and a word is what stands between white space.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Protocol

from kdx.errors import KdxError, Place
from kdx.vocabulary import Split

PLAIN = ("txt",)

Lines = Mapping[Split, Mapping[str, Sequence[str]]]


class Told(Protocol):
    """Hears how far a long step has come."""

    def __call__(self, step: str, done: int, total: int | None) -> None:
        """`step` is what is being done; `done` of `total` counts bytes or lines, and None is a total not known."""


def untold(step: str, done: int, total: int | None) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class GeneratedText:
    """A corpus that is made from a seed; its words stand between spaces, punctuation too."""

    suffixes: tuple[str, ...]
    train_lines: int
    """Lines of training text, unless the grid wants another number."""
    generate: Callable[[int, int], Lines]
    """(seed, training lines) → the text."""


@dataclass(frozen=True)
class TextFile:
    """A text that can be read from its beginning, again and again."""

    place: str
    """For messages: the source with the path inside it."""
    lines: Callable[[], Iterator[bytes]]
    """Its lines, line feeds included; a KdxError where they cannot be read."""
    size: int = 0
    """Bytes that its folder or archive tells of; 0 for one that is made."""

    def decoded(self) -> Iterator[str]:
        """Its lines, without line feeds.

        Raises:
            KdxError: the text cannot be read, or is not UTF-8.
        """
        for number, line in enumerate(self.lines(), 1):
            yield decoded(line, self.place, number).removesuffix("\n")


Files = Mapping[PurePosixPath, TextFile]
"""What a folder or an archive holds, by the path inside it."""


def decoded(line: bytes, place: str, number: int) -> str:
    """Line `number` of `place` as text.

    Raises:
        KdxError: it is not UTF-8, or has a NUL character.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise KdxError(f"not UTF-8: byte 0x{line[error.start]:02x}", place=Place(place, number, column)) from error
    # NUL is valid UTF-8. So UTF-16 without a byte-order mark would pass, every line of it garbage.
    if "\0" in text:
        raise KdxError(
            "a NUL character, which no text has",
            place=Place(place, number, text.index("\0") + 1),
            hint="write it as UTF-8; of UTF-16: iconv -f UTF-16LE -t UTF-8",
        )
    return text


@dataclass(frozen=True)
class KnownFile:
    """What a file of a known corpus holds. What nobody has published is None and not checked."""

    lines: int
    sha256: str | None = None
    words: int | None = None
    """Runs of characters between white space."""
    sha1: str | None = None
    """Where that is what was published."""
    about: bool = False
    """Whether `lines` is a round figure, which holds within 5 %."""
    versions: Mapping[str | int, str] = field(default_factory=dict)
    """Other versions that are met with, by SHA-256 or number of lines, and what to say of each."""


@dataclass(frozen=True)
class Original:
    """A corpus made from the form in which it was published."""

    texts: Mapping[str, TextFile]
    """By name, `train.de`."""
    notes: tuple[str, ...] = ()
    """What is to be said of it."""


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
    address: str | None = None
    """Where its archive can be fetched; None: nowhere, as a whole."""
    archive_sha256: str | None = None
    """Of the archive at `address`; None: not known, so the files alone are checked."""
    by_hand: str = ""
    """How to come by it where it has no address."""
    exact: bool = True
    """Whether a file that differs from `files` is refused; otherwise, as where tokenisers differ, it is noted."""
    drift: float | None = None
    """By how much, as a share of its lines, a file of another length may be noted; longer or shorter it is refused,
    unless it is a known version. None: of any length."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What files are called where they were published (`wiki.train.tokens`), and their name here (`train.txt`)."""
    original: Callable[[Files, Told], Original | None] | None = None
    """Makes the corpus from its published form; None where that is not what the files are."""
    processed: Callable[[Mapping[str, TextFile], Told], Original] | None = None
    """Gives its own files the form that published scores are of, where they do not have it yet."""


def file_names(suffixes: Sequence[str]) -> list[str]:
    """`train.de`, `train.en`, `valid.de`, …: one file a split and suffix."""
    return [f"{split}.{suffix}" for split in Split for suffix in suffixes]

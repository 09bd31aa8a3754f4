"""Corpora before they have tokens: lines of text, by split and suffix.

Parallel text has two suffixes, the source and the target language; plain text has one, `txt`. A line ends in a line
feed, and words are separated by white space.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from random import Random
from typing import Protocol

from kdx.errors import KdxError, Place
from kdx.vocabulary import Split

PLAIN = ("txt",)

Lines = Mapping[Split, Mapping[str, Sequence[str]]]


class Progress(Protocol):
    """Receives the progress of a long step."""

    def __call__(self, step: str, done: int, total: int | None) -> None:
        """Reports that `done` of `total` bytes or lines of a step are done; None is an unknown total."""


def no_progress(step: str, done: int, total: int | None) -> None:
    """Ignores the progress."""


@dataclass(frozen=True)
class GeneratedText:
    """A text that is made from a seed; spaces separate its words and its punctuation."""

    suffixes: tuple[str, ...]
    train_lines: int
    """Number of lines of training text, unless the grid sets another."""
    generate: Callable[[int, int], Lines]
    """(seed, training lines) → the text."""


def draw_lines(
    name: str, seed: int, sizes: Mapping[Split, int], suffixes: Sequence[str], draw: Callable[[Random], tuple[str, ...]]
) -> Lines:
    """Draws the text of every split, by suffix; a pure function of its arguments.

    Fewer training lines are a prefix of more; valid and test do not depend on their number, and share no line of the
    first suffix with the training lines.

    Args:
        name: the name of the corpus.
        sizes: number of lines in each split.
        draw: draws one line for each suffix.
    """
    held_out: set[str] = set()
    text: dict[Split, dict[str, list[str]]] = {}
    for split in (Split.VALID, Split.TEST, Split.TRAIN):
        random = Random(f"{name} {seed} {split}")
        chosen: list[tuple[str, ...]] = []
        while len(chosen) < sizes[split]:
            lines = draw(random)
            if lines[0] not in held_out:
                chosen.append(lines)
        if split is not Split.TRAIN:
            held_out.update(first for first, *_ in chosen)
        text[split] = {suffix: [lines[side] for lines in chosen] for side, suffix in enumerate(suffixes)}
    return text


@dataclass(frozen=True)
class TextFile:
    """A text that can be read repeatedly from its beginning."""

    place: str
    """The source with the path inside it, for messages."""
    lines: Callable[[], Iterator[bytes]]
    """Reads its lines, line feeds included; raises KdxError if they cannot be read."""
    size: int = 0
    """Size in bytes in its folder or archive; 0 for a text that kdx made."""

    def decoded(self) -> Iterator[str]:
        """Yield the lines, without line feeds.

        Raises:
            KdxError: the text cannot be read, or is not UTF-8.
        """
        for number, line in enumerate(self.lines(), 1):
            yield decoded(line, self.place, number).removesuffix("\n")


Files = Mapping[PurePosixPath, TextFile]
"""Path inside a folder or an archive → text."""


def decoded(line: bytes, place: str, number: int) -> str:
    """Return line `number` of `place` as text.

    Raises:
        KdxError: the line is not UTF-8, or has a NUL character.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise KdxError(f"not UTF-8: byte 0x{line[error.start]:02x}", place=Place(place, number, column)) from error
    # NUL is valid UTF-8, so UTF-16 without a byte-order mark would pass as garbage.
    if "\0" in text:
        raise KdxError(
            "a NUL character, which no text has",
            place=Place(place, number, text.index("\0") + 1),
            hint="write it as UTF-8; of UTF-16: iconv -f UTF-16LE -t UTF-8",
        )
    return text


@dataclass(frozen=True)
class KnownFile:
    """The contents of a file of a known corpus. Unpublished facts are None and not checked."""

    lines: int
    sha256: str | None = None
    words: int | None = None
    """Runs of characters between white space."""
    about: bool = False
    """Whether `lines` is a round figure, which is shown and not compared."""


@dataclass(frozen=True)
class Original:
    """A corpus made from the form in which it was published."""

    texts: Mapping[str, TextFile]
    """Name, such as `train.de` → text."""
    notes: tuple[str, ...] = ()
    """Remarks for users."""


@dataclass(frozen=True)
class KnownText:
    """A published corpus, which kdx recognises but does not contain."""

    suffixes: tuple[str, ...]
    folder: str
    """Name of the folder of the files, if the archive holds more than one version of them."""
    licence: str
    tokenised: bool
    """Whether punctuation is already separated, so that BLEU compares the words as they are."""
    files: Mapping[str, KnownFile]
    """Name, such as `train.de` → contents."""
    address: str | None = None
    """The address of its archive; None if there is no single archive to fetch."""
    archive_sha256: str | None = None
    """Hash of the archive at `address`; None if unknown, so only the files are checked."""
    by_hand: str = ""
    """How to get the corpus if it has no address."""
    exact: bool = True
    """Whether a file that differs from `files` is refused; if not (tokenisers may differ), a difference is noted."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Published name of a file (`wiki.train.tokens`) → its name here (`train.txt`)."""
    title: str | None = None
    """Regular expression of the first line of a document (`kdx.data.documents`); None if it has no documents."""
    original: Callable[[Files, Progress], Original | None] | None = None
    """Makes the corpus from its published form; returns None if the files are not in that form."""
    processed: Callable[[Mapping[str, TextFile], Progress], Original] | None = None
    """Converts the user's files to the form of published scores, if they do not have it yet."""


def file_names(suffixes: Sequence[str]) -> list[str]:
    """Return the names `train.de`, `train.en`, `valid.de`, …, one for each split and suffix."""
    return [f"{split}.{suffix}" for split in Split for suffix in suffixes]

"""Copies real text into the data home, once and checked: `<home>/corpora/<name>/train.de`, …, and `about.json`."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kdx.axes import Split
from kdx.data import BUILT_IN
from kdx.data.examples import GeneratedExamples
from kdx.data.storage import data_home, new_folder
from kdx.data.text import GeneratedText, KnownText
from kdx.data.text_files import TextFile, corpus_files, open_source
from kdx.errors import KdxError, Place

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ABOUT = "about.json"


@dataclass(frozen=True)
class FileInfo:
    """What a prepared file holds."""

    lines: int
    words: int
    """Runs of characters between white space."""
    sha256: str


@dataclass(frozen=True)
class PreparedInfo:
    """A prepared corpus, as its `about.json` tells it."""

    name: str
    source: str
    """The folder or archive it was prepared from."""
    suffixes: tuple[str, ...]
    """The language translated from and the one translated to; `txt` alone for plain text."""
    licence: str | None
    """None: not known to kdx."""
    tokenised: bool
    """Whether punctuation already stands apart, as far as kdx knows."""
    files: Mapping[str, FileInfo]
    """By name, such as `train.de`."""


def corpus_folder(name: str, home: Path | None = None) -> Path:
    """Where the text of a prepared corpus lies."""
    return (home or data_home()) / "corpora" / name


def prepare(name: str, source: Path, home: Path | None = None) -> PreparedInfo:
    """Checks the text in `source`, a folder or an archive, and keeps a copy of it as the corpus `name`.

    Preparing the same text again changes nothing.

    Raises:
        KdxError: the text is missing, damaged, not what is known of a corpus of this name, or another text already
            has the name.
        StorageError: the disk is full, or the data home cannot be written.
    """
    known = BUILT_IN.get(name)
    if isinstance(known, GeneratedText | GeneratedExamples):
        raise KdxError(f"corpus `{name}` is generated: there is nothing to prepare", hint="use it as it is")
    if not _NAME.fullmatch(name):
        raise KdxError(f"`{name}` cannot name a corpus", allowed="up to 64 letters, digits, and . _ - after the first")
    folder = corpus_folder(name, home)
    with open_source(source) as found:
        suffixes, texts = corpus_files(source, found, known)
        present = read_about(folder)
        if present is None and folder.exists():
            raise KdxError("something else than a prepared corpus is in the way", place=str(folder), hint="remove it")
        with new_folder(folder) as filling:
            files = {file: _copy(text, filling / file) for file, text in texts.items()}
            _check_sides(texts, files, suffixes)
            if known:
                _check_known(texts, files, name, known)
            if present and present.files != files:
                raise KdxError(
                    f"corpus `{name}` is already there with another text, prepared from {present.source}",
                    hint=f"take another name, or remove {folder}",
                )
            about = PreparedInfo(
                name=name,
                source=str(source.absolute()),
                suffixes=suffixes,
                licence=known.licence if known else None,
                tokenised=known.tokenised if known else False,
                files=files,
            )
            (filling / _ABOUT).write_text(json.dumps(asdict(about), indent=2, ensure_ascii=False), encoding="utf-8")
    return present or about


def read_about(folder: Path) -> PreparedInfo | None:
    """What is told of the prepared corpus in `folder`; None when there is none.

    Raises:
        KdxError: the file that tells it is damaged.
    """
    path = folder / _ABOUT
    try:
        fields = json.loads(path.read_bytes())
        fields["files"] = {name: FileInfo(**file) for name, file in fields["files"].items()}
        fields["suffixes"] = tuple(fields["suffixes"])
        return PreparedInfo(**fields)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = f"remove {folder} and prepare the corpus again"
        raise KdxError(f"this does not tell what corpus it is: {error}", place=str(path), hint=hint) from error


def prepared_corpora(home: Path | None = None) -> list[PreparedInfo]:
    """Every prepared corpus, by name."""
    folders = sorted(corpus_folder("", home).glob("[!.]*/"))
    return [about for folder in folders if (about := read_about(folder))]


def _copy(text: TextFile, path: Path) -> FileInfo:
    digest, number, words = hashlib.sha256(), 0, 0
    with path.open("wb") as copy:
        for number, line in enumerate(text.lines(), 1):
            try:
                words += len(line.decode().split())
            except UnicodeDecodeError as error:
                place = Place(text.place, number, len(line[: error.start].decode()) + 1)
                raise KdxError(f"not UTF-8: byte 0x{line[error.start]:02x}", place=place) from error
            digest.update(line)
            copy.write(line)
    if not words:
        raise KdxError("no words in it", place=text.place)
    return FileInfo(number, words, digest.hexdigest())


def _check_sides(texts: Mapping[str, TextFile], files: Mapping[str, FileInfo], suffixes: tuple[str, ...]) -> None:
    for split in Split:
        first, *others = (f"{split}.{suffix}" for suffix in suffixes)
        for other in others:
            if files[other].lines != files[first].lines:
                raise KdxError(
                    f"{files[other].lines} lines, but {first} has {files[first].lines}; line by line they must match",
                    place=texts[other].place,
                )


def _check_known(texts: Mapping[str, TextFile], files: Mapping[str, FileInfo], name: str, known: KnownText) -> None:
    for file, expected in known.files.items():
        found = files[file]
        if (found.lines, found.sha256) != (expected.lines, expected.sha256):
            lines = (
                f"{found.lines} lines instead of {expected.lines}" if found.lines != expected.lines else "other text"
            )
            raise KdxError(
                f"not the {file} of {name}: {lines}, sha256 {found.sha256[:12]}… instead of {expected.sha256[:12]}…",
                place=texts[file].place,
                hint="to use it all the same, prepare it under another name",
            )

"""Finds the six or three text files of a corpus in a folder or an archive.

Parallel text has `train.X`, `train.Y`, and the same for valid and test. Plain text has `train.txt`, `valid.txt`,
`test.txt`, or names of which these splits are a part, such as `ptb.train.txt` and `wiki.train.tokens`.
"""

import os
import re
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath

from kdx.data.storage import translate_disk_errors
from kdx.data.text import PLAIN, Files, KnownText, TextFile, file_names
from kdx.errors import KdxError, shortened
from kdx.files import filling
from kdx.tasks.data_kinds import text_kind
from kdx.vocabulary import Split

_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")
"""A suffix of parallel text."""
_SOURCES = "a folder, .tar, .tar.gz, .tar.xz, .tar.bz2 or .zip"


class UnreadableError(KdxError):
    """The source is not an archive, or a damaged one."""


@contextmanager
def open_source(source: Path, home: Path) -> Iterator[Files]:
    """Yield the files of a folder, a tar archive (of any compression) or a zip archive, by their path inside.

    Args:
        home: the data home, in which an archive is unpacked until the block ends.

    Raises:
        UnreadableError: the source is not an archive, or a damaged one.
        KdxError: the source does not exist.
        StorageError: `home` cannot be written, or its disk is full.
    """
    # os.path returns False for a name that is too long; Path raises.
    if os.path.isdir(source):  # noqa: PTH112
        yield _files(source, source)
    elif os.path.isfile(source):  # noqa: PTH113
        with translate_disk_errors(home):
            home.mkdir(parents=True, exist_ok=True)
            with filling(home, folder=True) as unpacked:
                _unpack(source, unpacked)
                yield _files(unpacked, source)
    else:
        raise KdxError("no such folder or archive", place=str(source), allowed=_SOURCES)


def _unpack(archive: Path, folder: Path) -> None:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened_zip:
                opened_zip.extractall(folder)
        else:
            with tarfile.open(archive) as opened_tar:
                opened_tar.extractall(folder, filter="data")
    except tarfile.ReadError as error:
        raise UnreadableError("this is no archive, or a damaged one", place=str(archive), allowed=_SOURCES) from error
    except Exception as error:
        # A damaged archive may raise almost any exception; an error with a number is from the disk.
        if isinstance(error, OSError) and error.errno:
            raise
        raise UnreadableError(f"cannot be unpacked: {error}", place=str(archive)) from error


def _files(folder: Path, source: Path) -> Files:
    """Return the files of a folder and its subfolders; links to folders are not followed.

    Args:
        source: path of the folder in messages.
    """
    files = {}
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names if "." in name):
            if path.is_file():
                inside = PurePosixPath(path.relative_to(folder))
                shown = str(source / inside)
                files[inside] = TextFile(shown, partial(_lines, path, shown), path.stat().st_size)
    return files


def _lines(path: Path, shown: str) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise KdxError(f"cannot be read: {error.strerror}", place=shown) from error


def corpus_files(
    source: Path, files: Files, known: KnownText | None = None
) -> tuple[tuple[str, ...], dict[str, TextFile]]:
    """Return the suffixes of the corpus in `files` (its direction, if parallel), and its files by name (`train.de`).

    If several folders have training text, the one named in `known` counts, else the topmost.

    Raises:
        KdxError: no folder has training text of this corpus, or several have; or a file is missing.
    """
    files = _renamed(files, known) if known else {**_plain_by_part(files), **files}
    folders = {path.parent for path in files if _suffix(path)}
    allowed = ["train.txt, or one file such as ptb.train.txt, or train.X and train.Y"]
    if known:
        allowed = [f"{Split.TRAIN}.{suffix}" for suffix in known.suffixes]
        folders = {folder for folder in folders if all(folder / name in files for name in allowed)}
        folders = {folder for folder in folders if folder.name == known.folder} or folders
    if not folders:
        others = f", but {_some_of(files)}" if files else ""
        raise KdxError(f"no training text in it{others}", place=str(source), allowed=allowed)
    uppermost = min(len(folder.parts) for folder in folders)
    candidates = sorted(str(folder) for folder in folders if len(folder.parts) == uppermost)
    if len(candidates) > 1:
        raise KdxError(
            f"training text in {len(candidates)} folders: {', '.join(candidates)}",
            place=str(source),
            hint="unpack it and give one of them",
        )
    folder = PurePosixPath(candidates[0])
    suffixes = known.suffixes if known else _suffixes(source / folder, files, folder)
    names = file_names(suffixes)
    if missing := [name for name in names if folder / name not in files]:
        raise KdxError(f"missing: {', '.join(missing)}", place=str(source / folder), allowed=names)
    return suffixes, {name: files[folder / name] for name in names}


def joined(texts: Sequence[TextFile]) -> TextFile:
    """Concatenates texts."""

    def lines() -> Iterator[bytes]:
        for text in texts:
            for line in text.lines():
                yield line if line.endswith(b"\n") else line + b"\n"

    return TextFile(" + ".join(text.place for text in texts), lines, sum(text.size for text in texts))


def text_of_lines(place: str, lines: Sequence[str]) -> TextFile:
    """Return a text of these lines, which were made from the text at `place`."""
    return TextFile(place, lambda: (f"{line}\n".encode() for line in lines))


_SEGMENT = re.compile(r'<seg id="[0-9]*">\s*')
_SEGMENT_END = re.compile(r"\s*</seg>\s*")


def segments(text: TextFile) -> Iterator[str]:
    """Yield the text of each `<seg id="…">` in a test set, the form in which translation campaigns publish them."""
    for line in text.decoded():
        if "<seg id" in line:
            yield _SEGMENT_END.sub("", _SEGMENT.sub("", line)).strip()


def _renamed(files: Files, known: KnownText) -> Files:
    """Return the files under the names that kdx uses; a file that already has such a name replaces a renamed one."""
    ours = {path.with_name(known.names[path.name]): file for path, file in files.items() if path.name in known.names}
    return {**ours, **files}


_PARTS = {Split.TRAIN: {"train"}, Split.VALID: {"valid", "val", "dev"}, Split.TEST: {"test"}}


def _plain_by_part(files: Files) -> Files:
    """Return plain text under the names that kdx uses: files whose names contain a split, one per split in a folder."""
    named: dict[PurePosixPath, list[PurePosixPath]] = {}
    for path in files:
        for split, words in _PARTS.items():
            if words & {*re.split(r"[._-]", path.name.lower())}:
                named.setdefault(path.with_name(f"{split}.{PLAIN[0]}"), []).append(path)
    whole = {
        path.parent for path in named if all(len(named.get(path.with_name(f"{split}.txt"), ())) == 1 for split in Split)
    }
    return {path: files[of_split[0]] for path, of_split in named.items() if path.parent in whole}


def _some_of(files: Files) -> str:
    """Return the first few file names, sorted."""
    names = sorted(map(str, files))
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(map(shortened, names[:5])) + more


def _suffix(path: PurePosixPath) -> str | None:
    split, _, suffix = path.name.partition(".")
    return suffix if split == "train" and _LANGUAGE.fullmatch(suffix) else None


def _suffixes(place: Path, files: Files, folder: PurePosixPath) -> tuple[str, ...]:
    suffixes = {suffix for path in files if path.parent == folder and (suffix := _suffix(path))}
    fixed = text_kind(tuple(suffixes)).suffixes
    if fixed:
        return fixed
    languages = tuple(sorted(suffixes - set(PLAIN)))
    if len(languages) == 2:
        return languages
    if not languages:
        return PLAIN
    raise KdxError(
        f"training text with {len(languages)} suffixes: {', '.join(languages)}",
        place=str(place),
        allowed="two of them (parallel text), or train.txt alone (plain text)",
    )

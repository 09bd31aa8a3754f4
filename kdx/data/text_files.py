"""Finds the six or three text files of a corpus in a folder or an archive, whoever made it.

Parallel text: `train.X`, `train.Y`, and the same for valid and test. Plain text: `train.txt`, `valid.txt`, `test.txt`.
An archive is read where it lies and never unpacked, so nothing in it can be written to a place of its choosing.
"""

import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, cast

from kdx.data.text import PLAIN, KnownText, file_names
from kdx.errors import KdxError

_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # an encrypted zip
)
_DEEPEST = 3  # levels below a folder that are searched


Opener = Callable[[], IO[bytes]]


@dataclass(frozen=True)
class TextFile:
    """A file of a folder or an archive."""

    place: str
    """For messages: the source with the path inside it."""
    open: Opener

    def lines(self) -> Iterator[bytes]:
        """Its lines, line feeds included.

        Raises:
            KdxError: the file, or the archive around it, is damaged.
        """
        try:
            with self.open() as stream:
                yield from stream
        except _BROKEN as error:
            raise _unreadable(self.place, error) from error


Files = Mapping[PurePosixPath, TextFile]


@contextmanager
def open_source(source: Path) -> Iterator[Files]:
    """The files of a folder, a tar archive (of any compression) or a zip archive, by their path inside.

    Raises:
        KdxError: nothing is there, it is no archive or a damaged one, or a path in it leads out of it.
    """
    with ExitStack() as opened:
        try:
            files = _files(source, opened)
        except _BROKEN as error:
            raise _unreadable(str(source), error) from error
        yield files


def _files(source: Path, opened: ExitStack) -> Files:
    if source.is_dir():
        return _in_folder(source)
    if not source.exists():
        raise KdxError("no such folder or archive", place=str(source))
    if zipfile.is_zipfile(source):
        return _in_zip(source, opened.enter_context(zipfile.ZipFile(source)))
    if tarfile.is_tarfile(source):
        return _in_tar(source, opened.enter_context(tarfile.open(source)))
    allowed = "a folder, .tar, .tar.gz, .tar.xz, .tar.bz2 or .zip"
    raise KdxError("this is no archive, or a damaged one", place=str(source), allowed=allowed)


def corpus_files(
    source: Path, files: Files, known: KnownText | None = None
) -> tuple[tuple[str, ...], dict[str, TextFile]]:
    """The suffixes of the corpus in `files` (its direction, if parallel), and its files by name (`train.de`).

    Where several folders hold training text, the one that is `known` by name is taken, else the uppermost.

    Raises:
        KdxError: no training text or too much of it, or a file is missing.
    """
    folders = {path.parent for path in files if _suffix(path)}
    if not folders:
        raise KdxError("no training text in it", place=str(source), allowed="train.txt, or train.X and train.Y")
    if known:
        folders = {folder for folder in folders if folder.name == known.folder} or folders
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


def _suffix(path: PurePosixPath) -> str | None:
    split, _, suffix = path.name.partition(".")
    return suffix if split == "train" and _LANGUAGE.fullmatch(suffix) else None


def _suffixes(place: Path, files: Files, folder: PurePosixPath) -> tuple[str, ...]:
    found = {suffix for path in files if path.parent == folder and (suffix := _suffix(path))}
    languages = tuple(sorted(found - set(PLAIN)))
    if len(languages) == 2:
        return languages
    if not languages:
        return PLAIN
    raise KdxError(
        f"training text with {len(languages)} suffixes: {', '.join(languages)}",
        place=str(place),
        allowed="two of them (parallel text), or train.txt alone (plain text)",
    )


def _in_folder(source: Path) -> Files:
    found = (path for depth in range(_DEEPEST) for path in source.glob("*/" * depth + "*.*") if path.is_file())
    return {
        PurePosixPath(path.relative_to(source)): TextFile(str(path), cast(Opener, partial(path.open, "rb")))
        for path in found
    }


def _in_tar(source: Path, archive: tarfile.TarFile) -> Files:
    # A link would be followed inside the archive only, but no corpus is made of links.
    members = [member for member in archive.getmembers() if _stays_inside(source, member.name) and member.isreg()]
    return {
        PurePosixPath(member.name): TextFile(
            f"{source}/{member.name}", cast(Opener, partial(archive.extractfile, member))
        )
        for member in members
    }


def _in_zip(source: Path, archive: zipfile.ZipFile) -> Files:
    members = [member for member in archive.infolist() if _stays_inside(source, member.filename)]
    return {
        PurePosixPath(member.filename): TextFile(f"{source}/{member.filename}", partial(archive.open, member))
        for member in members
        if not member.is_dir() and not stat.S_ISLNK(member.external_attr >> 16)
    }


def _stays_inside(source: Path, name: str) -> bool:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise KdxError(f"an archive with a path that leads out of it: {name!r}", place=str(source))
    return True


def _unreadable(place: str, error: Exception) -> KdxError:
    return KdxError(f"cannot be read: {error}", place=place)

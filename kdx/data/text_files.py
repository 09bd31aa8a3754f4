"""Finds the six or three text files of a corpus in a folder or an archive, which may come from anybody.

Parallel text has `train.X`, `train.Y`, and the same for valid and test. Plain text has `train.txt`, `valid.txt`,
`test.txt`, or names of which these splits are a part, such as `ptb.train.txt` and `wiki.train.tokens`. An archive is
read without unpacking it, so its paths cannot lead to a write elsewhere.
"""

import io
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, cast

from kdx.data.text import PLAIN, Files, KnownText, TextFile, file_names
from kdx.errors import KdxError, Place, shortened
from kdx.files import NotAFileError, not_a_file, open_file
from kdx.tasks.data_kinds import text_kind
from kdx.vocabulary import Split

LONGEST_LINE = 1_000_000
"""Largest size of a line in bytes; a longer one shows that the file is not text."""
MOST_FILES = 100_000
"""Largest number of files in a folder or an archive; a corpus has six."""

LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")
"""A suffix of parallel text."""
_SOURCES = "a folder, .tar, .tar.gz, .tar.xz, .tar.bz2 or .zip"

Opener = Callable[[], IO[bytes]]


class UnreadableError(KdxError):
    """The source is no archive, or a damaged one."""


@contextmanager
def open_source(source: Path) -> Iterator[Files]:
    """The files of a folder, a tar archive (of any compression) or a zip archive, by their path inside.

    Raises:
        UnreadableError: the source is no archive, or a damaged one.
        KdxError: the source does not exist, a path in it leads out of it, or it is too large for a corpus.
    """
    with ExitStack() as opened:
        with _damage_located(str(source)):
            files = _files(source, opened)
        yield files


def _files(source: Path, opened: ExitStack) -> Files:
    if source.is_dir():
        return _in_folder(source)
    try:
        with open_file(source) as file:
            file.read(1)
    except NotAFileError as error:
        raise KdxError(str(error.strerror), place=str(source), allowed=_SOURCES) from error
    except (FileNotFoundError, ValueError) as error:
        raise KdxError("no such folder or archive", place=str(source)) from error
    if zipfile.is_zipfile(source):
        return _in_zip(source, opened.enter_context(zipfile.ZipFile(source)))
    with suppress(tarfile.TarError):
        return _in_tar(source, opened.enter_context(tarfile.open(source)))
    raise UnreadableError("this is no archive, or a damaged one", place=str(source), allowed=_SOURCES)


def corpus_files(
    source: Path, files: Files, known: KnownText | None = None
) -> tuple[tuple[str, ...], dict[str, TextFile]]:
    """The suffixes of the corpus in `files` (its direction, if parallel), and its files by name (`train.de`).

    If several folders have training text, the one with the name in `known` counts, else the uppermost.

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
        there = f", but {_some_of(files)}" if files else ""
        raise KdxError(f"no training text in it{there}", place=str(source), allowed=allowed)
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
    """A text of these lines, which were made from the text at `place`."""
    return TextFile(place, lambda: (f"{line}\n".encode() for line in lines))


_SEGMENT = re.compile(r'<seg id="[0-9]*">\s*')
_SEGMENT_END = re.compile(r"\s*</seg>\s*")


def segments(text: TextFile) -> Iterator[str]:
    """The text of each `<seg id="…">` in a test set, the form in which translation campaigns publish them."""
    for line in text.decoded():
        if "<seg id" in line:
            yield _SEGMENT_END.sub("", _SEGMENT.sub("", line)).strip()


def _renamed(files: Files, known: KnownText) -> Files:
    """The files with their names here; a file that already has such a name wins over a renamed one."""
    ours = {path.with_name(known.names[path.name]): file for path, file in files.items() if path.name in known.names}
    return {**ours, **files}


_PARTS = {Split.TRAIN: {"train"}, Split.VALID: {"valid", "val", "dev"}, Split.TEST: {"test"}}


def _plain_by_part(files: Files) -> Files:
    """The files of which one alone in its folder has the name of a split as a part, as plain text is named here."""
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
    """The first files, in order of their names."""
    names = sorted(map(str, files))
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(map(shortened, names[:5])) + more


def _suffix(path: PurePosixPath) -> str | None:
    split, _, suffix = path.name.partition(".")
    return suffix if split == "train" and LANGUAGE.fullmatch(suffix) else None


def _suffixes(place: Path, files: Files, folder: PurePosixPath) -> tuple[str, ...]:
    found = {suffix for path in files if path.parent == folder and (suffix := _suffix(path))}
    fixed = text_kind(tuple(found)).suffixes
    if fixed:
        return fixed
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
    """The files of a folder and its subfolders."""
    files = {}
    for path in _walk(source):
        with suppress(OSError):  # a link that leads nowhere, or to itself
            found = path.stat()
            if not_a_file(found.st_mode) is None:
                opener = cast(Opener, partial(open_file, path))
                files[PurePosixPath(path.relative_to(source))] = _file(str(path), opener, found.st_size)
    return files


def _walk(folder: Path) -> Iterator[Path]:
    """Paths that may be text files. Links to folders are not followed."""
    met = 0
    for place, folders, names in os.walk(folder):
        met += len(folders) + len(names)
        if met > MOST_FILES:
            raise KdxError(f"a folder of more than {MOST_FILES:,} files is no corpus", place=str(folder))
        yield from (Path(place) / name for name in names if "." in name)


def _in_tar(source: Path, archive: tarfile.TarFile) -> Files:
    files = {}
    for number, member in enumerate(archive, 1):
        _check_member(source, number, member.name)
        # A link would stay inside the archive, but no corpus has links.
        if member.isreg() and not member.issparse():
            opener = cast(Opener, partial(archive.extractfile, member))
            files[PurePosixPath(member.name)] = _file(f"{source}/{member.name}", opener, member.size)
    return files


def _in_zip(source: Path, archive: zipfile.ZipFile) -> Files:
    files = {}
    for number, member in enumerate(archive.infolist(), 1):
        _check_member(source, number, member.filename)
        if not member.filename.endswith("/") and stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG):
            opener = partial(archive.open, member)
            files[PurePosixPath(member.filename)] = _file(f"{source}/{member.filename}", opener, member.file_size)
    return files


def _check_member(source: Path, number: int, name: str) -> None:
    if number > MOST_FILES:
        raise KdxError(f"an archive of more than {MOST_FILES:,} files is no corpus", place=str(source))
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise KdxError(f"an archive with a path that leads out of it: {name!r}", place=str(source))


def _file(place: str, opener: Opener, size: int) -> TextFile:
    return TextFile(place, partial(_lines, place, opener), size)


def _lines(place: str, opener: Opener) -> Iterator[bytes]:
    number = 0
    # Files of zipfile read single lines slowly.
    with _damage_located(place), io.BufferedReader(cast(io.RawIOBase, opener()), 1 << 20) as stream:
        while line := stream.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise KdxError(
                    f"a line of more than {LONGEST_LINE:,} bytes",
                    place=Place(place, number, 1),
                    hint="text has a sentence or a paragraph a line",
                )
            yield line


@contextmanager
def _damage_located(place: str) -> Iterator[None]:
    """Raises what reading fails with as an UnreadableError; with damaged archives that may be almost anything."""
    try:
        yield
    except (KdxError, MemoryError):
        raise
    except Exception as error:
        raise UnreadableError(f"cannot be read: {error}", place=place) from error

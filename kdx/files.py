"""Writes files and folders completely or not at all, and reads files up to a limit.

A file or folder is written under a temporary name in the same place, `.kdx-…`, and renamed when it is complete.
"""

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

_UNFINISHED = re.compile(r"\.kdx-[0-9a-f]{16}")
_ABANDONED = 24 * 60 * 60
"""Age in seconds after which an unfinished file or folder counts as abandoned."""
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


class NotAFileError(OSError):
    """The path names a folder, a named pipe, a device, a socket, or a link that is not followed."""


class TooLargeError(OSError):
    """The file has more bytes than it may."""

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__(errno.EFBIG, f"it has {size:,} bytes")


def not_a_file(mode: int) -> str | None:
    """Return what a path names if it is not a file, such as "a folder"; None for a file."""
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no file")


def open_file(path: Path, *, follow: bool = True) -> BufferedReader:
    """Open a file for reading; never opens a pipe or the like, which would wait for a writer.

    Args:
        follow: whether to follow a link at the end of the path.

    Raises:
        NotAFileError: the path names something else, which is not opened.
        OSError: the file does not exist, or may not be read.
        ValueError: the path is invalid.
    """
    if what := not_a_file(path.stat(follow_symlinks=follow).st_mode):
        raise NotAFileError(errno.EINVAL, f"this is {what}, not a file", str(path))
    return path.open("rb")


def read_file(path: Path, most: int) -> bytes:
    """Return the content of a file.

    Args:
        most: the most bytes that it may have.

    Raises:
        TooLargeError: the file has more.
        NotAFileError, OSError, ValueError: as `open_file`.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise TooLargeError(size)
        return file.read()


@contextmanager
def filling(place: Path, *, folder: bool = False) -> Iterator[Path]:
    """Create an empty file or folder in `place`, to be filled and renamed; at the end it is removed if still there.

    Unfinished files that killed processes left in `place` at least a day ago are removed first.

    Raises:
        OSError: the file or folder cannot be created.
    """
    with suppress(OSError):
        for left in place.iterdir():
            if is_unfinished(left.name) and left.lstat().st_mtime < time.time() - _ABANDONED:
                _remove(left)
    path = place / f".kdx-{secrets.token_hex(8)}"
    try:
        if folder:
            path.mkdir()
        else:
            path.touch(exist_ok=False)
    except OSError as error:
        error.filename = str(place)  # the only name that the user knows
        raise
    try:
        yield path
    finally:
        _remove(path)


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write or replace a file so that it exists completely or not at all, even after a power cut.

    The content is forced to disk, then renamed, then the name is forced to disk. A link at the path is replaced, not
    followed.

    Raises:
        OSError: the file cannot be written; the earlier one stays.
    """
    with filling(path.parent) as unfinished:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    fsync_directory(path.parent)


def fsync_directory(folder: Path) -> None:
    """Force the names in a folder to disk; until then a power cut may remove them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_unfinished(name: str) -> bool:
    """Return whether the name is that of a file or folder that is being filled, or was when its process was killed."""
    return _UNFINISHED.fullmatch(name) is not None


def give_name(path: Path, name: Path) -> None:
    """Rename a file or folder, unless the new name exists.

    Raises:
        FileExistsError: the new name exists.
        OSError: the file or folder cannot be renamed.
    """
    taken = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(name))
    if os.path.lexists(name):
        raise taken
    try:
        path.rename(name)
    except OSError as error:
        # Another process has made the same folder in the meantime.
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
            raise taken from error
        raise


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            path.unlink()

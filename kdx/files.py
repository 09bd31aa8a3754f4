"""Files and folders that are there whole or not at all, and files that are read without surprises.

Whatever kdx writes under a name that somebody gave is filled under a temporary name beside it, `.kdx-…`, and takes the
given name when it is whole.
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

from kdx.errors import KdxError

_UNFINISHED = re.compile(r"\.kdx-[0-9a-f]{16}")
_ABANDONED = 24 * 60 * 60
"""Age in seconds from which on nobody is filling an unfinished file or folder any more."""
_NO_LINKS = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK})
"""The errors of a file system without hard links."""
_IMPOSSIBLE = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP, errno.EINVAL})
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


class NotAFileError(OSError):
    """What has the name is a folder, a named pipe, a device, a socket, or a link that is not followed."""

    def __init__(self, what: str, path: Path) -> None:
        self.problem = f"this is {what}, not a file"
        super().__init__(errno.EINVAL, self.problem, str(path))


class TooLargeError(OSError):
    """The file has more bytes than it may."""

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__(errno.EFBIG, f"it has {size:,} bytes or more")


def not_a_file(mode: int) -> str | None:
    """What a path is that is no file, such as "a folder"; None for a file."""
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no file")


def open_file(path: Path, *, follow: bool = True) -> BufferedReader:
    """A file, opened to read; opening and reading never wait for somebody to write.

    Args:
        follow: whether a link at the end of the path is followed.

    Raises:
        NotAFileError: the path is something else.
        OSError: it is not there, or must not be read.
        ValueError: no path can be like this.
    """
    extra = os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)

    def checked(mode: int) -> None:
        if what := not_a_file(mode):
            raise NotAFileError(what, path)

    def opened(name: str, flags: int) -> int:
        descriptor = os.open(name, flags | extra)
        try:
            checked(os.fstat(descriptor).st_mode)
        except NotAFileError:
            os.close(descriptor)
            raise
        return descriptor

    # Looked at before, too: to open a device may already do something.
    checked(path.stat(follow_symlinks=follow).st_mode)
    return open(path, "rb", opener=opened)


def read_start(path: Path, count: int) -> bytes:
    """The first bytes of a file, at most `count`.

    Raises:
        NotAFileError, OSError, ValueError: as `open_file`.
    """
    with open_file(path) as file:
        return _read(file, count)


def read_file(path: Path, most: int, *, follow: bool = True) -> bytes:
    """What a file holds.

    Args:
        most: bytes that it may have.
        follow: as for `open_file`.

    Raises:
        TooLargeError: it has more.
        NotAFileError, OSError, ValueError: as `open_file`.
    """
    with open_file(path, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        # The size of a file of /proc is 0.
        content = b"" if size > most else _read(file, most + 1)
    if max(size, len(content)) > most:
        raise TooLargeError(max(size, len(content)))
    return content


def _read(file: BufferedReader, count: int) -> bytes:
    content: bytes | None = file.read(count)
    if content is None:  # some files of /proc make their readers wait
        raise BlockingIOError(errno.EAGAIN, "there is nothing to read")
    return content


def is_free(name: Path) -> bool:
    """Whether there is nothing of this name, not even a link that leads nowhere.

    Raises:
        KdxError: nothing can have this name.
        OSError: it cannot be looked at.
    """
    try:
        name.lstat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", errno.EINVAL)
        if number not in _IMPOSSIBLE:
            raise
        raise KdxError(f"nothing can have this name: {os.strerror(number)}", place=str(name)) from error
    return False


@contextmanager
def filling(place: Path, *, folder: bool = False) -> Iterator[Path]:
    """A new empty file or folder in `place`, to be filled and renamed; what was not renamed is gone after the block.

    Files and folders that were being filled in `place` a day ago, by processes that were killed, are removed first.

    Raises:
        OSError: it cannot be created.
    """
    _remove_abandoned(place)
    path = _create(place, folder)
    try:
        yield path
    finally:
        _remove(path)


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Writes a file that is there whole under its name or not at all, even if the power is cut; one before it goes.

    The content is forced to disk, then takes its name, then the name is forced to disk. Nothing is written through a
    link at the name.

    Raises:
        OSError: it cannot be written; then nothing is left of it.
    """
    unfinished = _create(path.parent)
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    except BaseException:
        _remove(unfinished)
        raise
    fsync_directory(path.parent)


def fsync_directory(folder: Path) -> None:
    """Forces the names in a folder to disk; until then a cut of the power may take them, whatever they name."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_unfinished(name: str) -> bool:
    """Whether a file or folder of this name is being filled, or was when its process was killed."""
    return _UNFINISHED.fullmatch(name) is not None


def unfinished_name(place: Path) -> Path:
    """A new path in `place` for what has no name yet, or none any more."""
    return place / f".kdx-{secrets.token_hex(8)}"


def give_name(path: Path, name: Path) -> None:
    """Renames a file or folder, unless there is something of the new name. No content is ever overwritten.

    Raises:
        FileExistsError: there is something.
        OSError: it cannot be renamed.
    """
    if not path.is_dir():
        try:
            # Unlike a rename, it fails where the name is taken.
            os.link(path, name)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        else:
            path.unlink()
            return
    # Of what comes into being between these two lines, a rename replaces only a file by a file (where there are no
    # links), and a folder by an empty folder.
    if os.path.lexists(name):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(name))
    try:
        path.rename(name)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(name)) from error


def _create(place: Path, folder: bool = False) -> Path:
    path = unfinished_name(place)
    try:
        if folder:
            path.mkdir()
        else:
            path.touch(exist_ok=False)
    except OSError as error:
        error.filename = str(place)  # nobody has heard of the other name
        raise
    return path


def _remove_abandoned(place: Path) -> None:
    with suppress(OSError):
        for path in place.iterdir():
            if is_unfinished(path.name) and path.lstat().st_mtime < time.time() - _ABANDONED:
                _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

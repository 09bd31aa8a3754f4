"""Files and folders that are there whole or not at all, and files that are read without surprises.

Whatever kdx makes under a name that somebody gave is filled under a name of its own beside it, `.kdx-…`, and takes the
given name when it is whole. Who fills it holds a lock on it. So one that nobody holds was left by a process that was
killed, and whoever next makes something there removes it.
"""

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from kdx.errors import KdxError

_FILLING = re.compile(r"\.kdx-[0-9a-f]{16}")
_AT_FDCWD, _RENAME_NOREPLACE = -100, 1  # [Linux, include/uapi/linux/fcntl.h and fs.h]
_LACKING = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK})
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
        # Those of /proc tell no size.
        content = b"" if size > most else _read(file, most + 1)
    if max(size, len(content)) > most:
        raise TooLargeError(max(size, len(content)))
    return content


def _read(file: BufferedReader, count: int) -> bytes:
    content: bytes | None = file.read(count)
    if content is None:  # some files of /proc make their readers wait
        raise BlockingIOError(errno.EAGAIN, "there is nothing to be read")
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

    What killed processes left in `place` is removed first.

    Raises:
        OSError: it cannot be made.
    """
    _remove_left(place)
    path, held = _made(place, folder)
    try:
        yield path
    finally:
        _remove(path)
        os.close(held)


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Writes a file that is there whole under its name or not at all, even if the power is cut; one before it goes.

    The content is forced to disk, then takes its name, then the name is forced to disk. Nothing is written through a
    link, neither at the name nor at the one before it. What killed processes left in the folder is removed first.

    Raises:
        OSError: it cannot be written; then nothing is left of it.
    """
    _remove_left(path.parent)
    # As `open` makes one: for all whom the umask lets.
    unfinished, held = _made(path.parent, folder=False, mode=0o666)
    with os.fdopen(held, "wb") as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(held)
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
    return _FILLING.fullmatch(name) is not None


def nameless(place: Path) -> Path:
    """A new path in `place`, of which the next that makes something there takes whatever has it for left, see above."""
    return place / f".kdx-{secrets.token_hex(8)}"


def give_name(path: Path, name: Path) -> None:
    """Renames a file or folder, unless there is something of the new name. Nothing is ever overwritten.

    Raises:
        FileExistsError: there is something.
        OSError: it cannot be renamed.
    """
    with _unless_lacking():
        _rename_without_replacing(path, name)
        return
    if not path.is_dir():
        with _unless_lacking():
            os.link(path, name)
            path.unlink()
            return
    # What comes into being between these two lines is lost, if it is a file or an empty folder.
    if os.path.lexists(name):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(name))
    path.rename(name)


@contextmanager
def _unless_lacking() -> Iterator[None]:
    """Ends quietly where this system or this file system has no such call."""
    try:
        yield
    except OSError as error:
        if error.errno not in _LACKING:
            raise


def _rename_without_replacing(path: Path, name: Path) -> None:
    """As renameat2 has it, which Python does not offer [Linux man-pages, rename(2)]."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(_AT_FDCWD, os.fsencode(path), _AT_FDCWD, os.fsencode(name), _RENAME_NOREPLACE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(name))


def _made(place: Path, folder: bool, mode: int = 0o644) -> tuple[Path, int]:
    """A file or folder of a name of its own, and a descriptor that holds the lock on it, where locks are to be had."""
    while True:
        path = nameless(place)
        # Until it is locked, somebody may take it for left and remove it; then another one is made.
        try:
            if folder:
                path.mkdir()
                flags = os.O_RDONLY | os.O_DIRECTORY
            else:
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            held = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        except OSError as error:
            if folder and isinstance(error, FileNotFoundError) and place.is_dir():
                continue
            error.filename = str(place)  # nobody has heard of the other name
            raise
        removed = False
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            removed = True
        except OSError:
            pass  # There are no locks here.
        if not removed and path.exists():
            return path, held
        os.close(held)


def _remove_left(place: Path) -> None:
    with suppress(OSError):
        for path in place.iterdir():
            if is_unfinished(path.name):
                _remove_unless_held(path)


def _remove_unless_held(path: Path) -> None:
    with suppress(OSError):
        held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            # Where there are no locks this fails, and what was left stays.
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path)
        finally:
            os.close(held)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

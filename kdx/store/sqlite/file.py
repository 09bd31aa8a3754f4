"""The file of a database: finds it by its address, and refuses files that kdx must not open."""

import os
import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import make_url

from kdx.errors import DatabaseError, StorageError
from kdx.files import not_a_file, open_file
from kdx.store.refusals import (
    ADDRESSES,
    BY,
    OTHER_DATABASE,
    DamagedDatabaseError,
    absent,
    another_application,
    without_password,
)

APPLICATION_ID = 0x6B647831
"""Application id "kdx1" in the header of a results database."""

ALLOW_NETWORK = "KDX_ALLOW_NETWORK"
"""Environment variable that lets kdx write a database on a network file system whose locks are known to work."""

PUT_BACK = "put the right file back, then kdx resume"
"""What to do where another file took the place of a database."""

RECOVERY = "sqlite3 FILE .recover"

_DRIVERS = ("sqlite", "sqlite+pysqlite")


NETWORK = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "wekafs", "fuse.ceph", "fuse.davfs",
    "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.juicefs", "fuse.moosefs", "fuse.quobyte", "fuse.rclone",
    "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse",
})  # fmt: skip
"""File systems that several (virtual) machines write, by the kernel's names in /proc/self/mounts.

SQLite relies on locks and on synced writes, which these do not guarantee: two machines, or one after a lost connection,
can then write the same page. So a results database on such a file system is opened only to read.
"""

_HEADER = 100
"""Bytes of the header of a SQLite file."""

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names a super-journal [sqlite.org/fileformat2.html, 3]."""


def file_of(address: str | Path) -> Path:
    """The file of a path, or of an address such as `sqlite:///runs.db`.

    Raises:
        DatabaseError: no file can have this address.
    """
    path = str(address)
    if not isinstance(address, Path) and "://" in address:
        place = without_password(address)
        try:
            url = make_url(address)
        except ValueError:  # the port is no number
            raise DatabaseError("this is not a database URL", place=place, allowed=ADDRESSES) from None
        path = url.database or ""
        if path in ("", ":memory:"):
            problem = "several processes write it, so it must be a file"
            raise DatabaseError(problem, place=place, allowed="sqlite:///FILE")
        if url.host or url.port is not None or url.username or url.query or url.drivername not in _DRIVERS:
            problem = "a database in a file has no host, user, driver or options"
            raise DatabaseError(problem, place=place, allowed=f"sqlite:///{path}")
    if not path or "\0" in path:
        raise DatabaseError(f"no file is named {str(address)!r}", allowed=ADDRESSES)
    return Path(path)


def application_of(path: Path) -> int | None:
    """Return the application id in the header of a SQLite file, 0 for none; None if the file is empty.

    An immutable file is read without locks, files beside it, or the half transaction of a killed writer, which is no
    reason to refuse it. SQLite closes the file: if kdx did, all locks of this process on it would go (POSIX), and what
    another thread reads could change under it [sqlite.org/howtocorrupt.html, 2.2].

    Raises:
        ValueError: the file is no SQLite database.
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    if size == 0:
        return None
    if size < _HEADER:
        raise ValueError("no SQLite database")
    address = f"file:{quote(os.fsencode(os.path.realpath(path)))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            # Else SQLite refuses a file whose header counts pages that a writer has not written yet.
            connection.execute("PRAGMA writable_schema = ON")
            return int(connection.execute("PRAGMA application_id").fetchone()[0])
    except sqlite3.OperationalError as error:
        raise OSError(0, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise ValueError("no SQLite database") from error


def is_database_file(path: Path) -> bool:
    """Whether a file is a database of any application; an empty file is none."""
    try:
        return path.is_file() and application_of(path) is not None
    except (OSError, ValueError):
        return False


def prepare(path: Path, *, write: bool, create: bool) -> None:
    """Refuse a file that cannot be opened in this way, without opening it in SQLite, and creates an empty one.

    Raises:
        DatabaseError: the file is absent, out of reach, no database, of another application, not writable for this
            user, or on a network file system.
        StorageError: it cannot be created.
    """
    exists = True
    try:
        what = not_a_file(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        exists, what = False, None
    except OSError as error:
        raise DatabaseError(f"this file cannot be reached: {error.strerror}", place=str(path)) from error
    if what:
        # Opening would wait for a named pipe, and write to a device.
        raise DatabaseError(f"this is {what}, not a database", place=str(path), hint=OTHER_DATABASE)
    if exists:
        if not os.access(path, os.R_OK):
            raise DatabaseError("no permission to read this file", place=str(path), hint="look at its owner and mode")
        if write and not os.access(path, os.W_OK):
            raise not_writable(path)
    elif not create:
        raise absent(str(path))
    elif not path.parent.is_dir():
        raise DatabaseError(f"there is no folder {path.parent}", place=str(path), hint="make it first")
    if write and not os.access(path.parent, os.W_OK):
        raise DatabaseError(
            "no permission to write its folder, where SQLite keeps a journal while it writes",
            place=str(path),
            hint=f"copy the database to a folder of yours, or name another with {BY}",
        )
    if write and (kind := filesystem(path)) in NETWORK and not os.environ.get(ALLOW_NETWORK):
        raise DatabaseError(
            f"it lies on a network file system ({kind}), whose locks cannot be trusted with a database",
            place=str(path),
            hint=f"name a file on a local disk with {BY}, and copy it here with kdx db backup; "
            f"{ALLOW_NETWORK}=1 if you know that the locks hold",
        )
    if not exists:
        try:
            path.touch()
        except OSError as error:
            raise StorageError(f"this file cannot be made: {error.strerror}", place=str(path)) from error
    # This comes before SQLite opens the file, which may play back a journal or change the mode of a foreign file.
    try:
        application = application_of(path)
    except ValueError as error:
        raise no_database(path) from error
    except OSError as error:
        raise DatabaseError(f"this file cannot be read: {error.strerror}", place=str(path)) from error
    if application is None and not create:
        raise DatabaseError("this file is empty, not a results database", place=str(path), hint=OTHER_DATABASE)
    if application not in (None, APPLICATION_ID):
        raise another_application(str(path))
    _refuse_foreign_journal(Path(os.path.realpath(path)))


def filesystem(path: Path, mounts: str | None = None) -> str | None:
    """The kind of file system on which `path` lies, which need not exist yet; None where the system does not say.

    statfs is of no use here, since it does not distinguish file systems in user space.

    Args:
        mounts: text in the form of /proc/self/mounts; None for that of this process.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(errors="surrogateescape")
        except OSError:
            return None
    place = path.resolve()
    kind, depth = None, 0
    for line in mounts.splitlines():
        _, folder, kind_there, *_ = line.split(" ")
        mount = Path(re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), folder))
        # A later mount at the same place hides the earlier one.
        if place.is_relative_to(mount) and len(mount.parts) >= depth:
            kind, depth = kind_there, len(mount.parts)
    return kind


def _refuse_foreign_journal(path: Path) -> None:
    """Refuse a journal that names another file, which SQLite would remove when it plays the journal back.

    No journal of kdx does, since kdx writes one database at a time.
    """
    journal = path.with_name(f"{path.name}-journal")
    with suppress(OSError), open_file(journal) as file:
        file.seek(max(0, file.seek(0, 2) - len(_JOURNAL_MAGIC)))
        if file.read() == _JOURNAL_MAGIC:
            raise foreign(path, "its journal names another file, which SQLite would remove")


def damaged(path: Path) -> DamagedDatabaseError:
    """The error for pages that contradict each other."""
    return DamagedDatabaseError(
        "the database is damaged",
        place=str(path),
        hint=f"restore a backup, or save what is left with: {RECOVERY}",
    )


def no_database(path: Path) -> DatabaseError:
    """The error for a file that is no database."""
    return DatabaseError("this file is not a database", place=str(path), hint=OTHER_DATABASE)


def not_writable(path: Path) -> DatabaseError:
    """The error for a file that the user may only read."""
    return DatabaseError(
        "no permission to write this file",
        place=str(path),
        hint=f"copy it to a file of yours, or name another with {BY}",
    )


def foreign(path: Path, problem: str) -> DatabaseError:
    """The error for a file in which something could act in place of kdx."""
    return DatabaseError(
        f"this file was not made by kdx alone: {problem}",
        place=str(path),
        hint="do not use it; if it is yours, restore a backup",
    )

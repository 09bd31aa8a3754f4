"""The file of a database: refuses files that kdx must not open, and notices when an open one is replaced."""

import os
from pathlib import Path

from kdx.errors import DatabaseError, StorageError
from kdx.files import not_a_file
from kdx.store.backend import OTHER_DATABASE, DamagedDatabaseError, another_application
from kdx.store.filesystem import NETWORK, filesystem
from kdx.store.sqlite.foreign import refuse_foreign_journal
from kdx.store.sqlite.header import APPLICATION_ID, application_of

ALLOW_NETWORK = "KDX_ALLOW_NETWORK"
"""Environment variable that lets kdx write a database on a network file system whose locks are known to work."""

RECOVERY = "sqlite3 FILE .recover"


class HeldFile:
    """The file of an open database, which notices when another file takes its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # The working directory or a link may change; the opened file does not.
        self.real = Path(os.path.realpath(path))
        self._held: int | None = None

    def close(self) -> None:
        """Releases the file."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def refuse_another(self) -> None:
        """Raises DatabaseError if the file of this name is no longer the opened one, or has several names."""
        try:
            found = self.real.stat()
        except FileNotFoundError:
            raise self.gone() from None
        if self._held is None:
            # While it is held, its inode goes to no other file. Closing an ordinary descriptor would release the locks
            # that SQLite has on the file [POSIX fcntl].
            self._held = os.open(self.real, os.O_PATH)
        held = os.fstat(self._held)
        if (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
            raise self.gone()
        if found.st_nlink > 1:
            raise DatabaseError(
                f"the file has {found.st_nlink} names (hard links); under another, SQLite would not find its journal",
                place=str(self.path),
                hint="make it a file of its own: cp it to another name, and move the copy here",
            )

    def gone(self) -> DatabaseError:
        """The error for a file that was deleted or replaced while it was open."""
        if self._held is None:
            return _absent(self.path)
        return DatabaseError(
            "the database was deleted or replaced while it was open",
            place=str(self.path),
            hint="nothing was written to what is there now; put the right file back, then kdx resume",
        )


def prepare(path: Path, *, write: bool, create: bool) -> None:
    """Refuses a file that cannot be opened in this way, without opening it in SQLite, and creates an empty one.

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
        raise _absent(path)
    elif not path.parent.is_dir():
        raise DatabaseError(f"there is no folder {path.parent}", place=str(path), hint="make it first")
    if write and not os.access(path.parent, os.W_OK):
        raise DatabaseError(
            "no permission to write its folder, where SQLite keeps a journal while it writes",
            place=str(path),
            hint="copy the database to a folder of yours, or name another with --db or KDX_DB",
        )
    if write and (kind := filesystem(path)) in NETWORK and not os.environ.get(ALLOW_NETWORK):
        raise DatabaseError(
            f"it lies on a network file system ({kind}), whose locks cannot be trusted with a database",
            place=str(path),
            hint=f"name a file on a local disk with --db or KDX_DB, and copy it here with kdx db backup; "
            f"{ALLOW_NETWORK}=1 if you know that the locks hold",
        )
    if not exists:
        try:
            path.touch()
        except OSError as error:
            raise StorageError(f"this file cannot be made: {error.strerror}", place=str(path)) from error
    # This comes before SQLite opens the file, which may play back a journal or change the mode of a foreign file.
    if _refuse_foreign(path) is None and not create:
        raise DatabaseError("this file is empty, not a results database", place=str(path), hint=OTHER_DATABASE)


def _refuse_foreign(path: Path) -> int | None:
    """Refuses a file of another application; returns the application id of kdx, or None if the file is empty."""
    try:
        application = application_of(path)
    except ValueError as error:
        raise no_database(path) from error
    except OSError as error:
        raise DatabaseError(f"this file cannot be read: {error.strerror}", place=str(path)) from error
    if application not in (None, APPLICATION_ID):
        raise another_application(str(path))
    refuse_foreign_journal(Path(os.path.realpath(path)))
    return application


def damaged(path: Path) -> DamagedDatabaseError:
    """The error for pages that contradict each other."""
    return DamagedDatabaseError(
        "the database is damaged",
        place=str(path),
        hint=f"take it back from a copy, or save what is left with: {RECOVERY}",
    )


def no_database(path: Path) -> DatabaseError:
    """The error for a file that is no database."""
    return DatabaseError("this file is not a database", place=str(path), hint=OTHER_DATABASE)


def not_writable(path: Path) -> DatabaseError:
    """The error for a file that the user may only read."""
    return DatabaseError(
        "no permission to write this file",
        place=str(path),
        hint="copy it to a file of yours, or name another with --db or KDX_DB",
    )


def _absent(path: Path) -> DatabaseError:
    return DatabaseError(
        "there is no results database here",
        place=str(path),
        hint="kdx sweep makes one; name another with --db or KDX_DB",
    )

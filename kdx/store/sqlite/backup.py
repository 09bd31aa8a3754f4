"""Copies a database that is in use."""

import itertools
import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from urllib.parse import quote

from kdx.errors import KdxError, StorageError
from kdx.files import filling, fsync_directory, give_name
from kdx.store.sqlite.file import damaged


def back_up(begun: Callable[[], AbstractContextManager[sqlite3.Connection]], target: Path) -> None:
    """Copies the state that a transaction sees to a new file, see `kdx.store.backend.Backend.back_up`.

    Args:
        begun: opens a connection in a transaction.
    """
    taken = KdxError("there is a file of this name", place=str(target), hint="name another; nothing is overwritten")
    try:
        if os.path.lexists(target):
            raise taken
        with filling(target.parent) as copy, begun() as source:
            try:
                _copy(source, copy)
            except sqlite3.Error as error:
                raise _not_written(target, error) from error
            give_name(copy, target)
            fsync_directory(target.parent)
    except FileExistsError:
        raise taken from None
    except OSError as error:
        raise _not_written(target, error) from error


def unused_name(path: Path, revision: str) -> Path:
    """An unused name for the copy before a migration; a copy of an earlier, aborted migration stays."""
    numbers = itertools.chain([""], map("-{}".format, itertools.count(2)))
    names = (path.with_name(f"{path.name}.before-{revision}{number}.bak") for number in numbers)
    return next(name for name in names if not name.exists())


def _copy(source: sqlite3.Connection, target: Path) -> None:
    """Copies the state that the transaction of `source` sees, and syncs it to disk."""
    # No other process knows this file, and the copy may go to a network file system without locks.
    with closing(sqlite3.connect(f"file:{quote(os.fsencode(target))}?nolock=1", uri=True)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")
        source.backup(copy)
        if copy.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            raise damaged(target)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _not_written(target: Path, error: Exception) -> StorageError:
    reason = error.strerror if isinstance(error, OSError) else error
    return StorageError(
        f"no copy of the database can be written: {reason}",
        place=str(target),
        hint="the database was not changed; free some space, or copy it to another disk with kdx db backup",
    )

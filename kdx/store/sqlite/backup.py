"""Copies of a database that is in use."""

import itertools
import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from urllib.parse import quote

from kdx.errors import KdxError, StorageError
from kdx.files import filling, fsync_directory, give_name, is_free
from kdx.store.sqlite.file import damaged


def back_up(begun: Callable[[], AbstractContextManager[sqlite3.Connection]], target: Path) -> None:
    """Copies what a transaction sees to a new file, see `kdx.store.backend.Backend.back_up`.

    Args:
        begun: a connection in a transaction, which holds what it sees.
    """
    there = KdxError("there is a file of this name", place=str(target), hint="name another; nothing is overwritten")
    try:
        if not is_free(target):
            raise there
        with filling(target.parent) as copy, begun() as source:
            try:
                _copy(source, copy)
            except sqlite3.Error as error:
                raise _not_written(target, error) from error
            give_name(copy, target)
            fsync_directory(target.parent)
    except FileExistsError:
        raise there from None
    except OSError as error:
        raise _not_written(target, error) from error


def unused_name(path: Path, revision: str) -> Path:
    """Of a copy to be made before a migration; an earlier one, of a migration that was cut short, stays."""
    numbers = itertools.chain([""], map("-{}".format, itertools.count(2)))
    names = (path.with_name(f"{path.name}.before-{revision}{number}.bak") for number in numbers)
    return next(name for name in names if not name.exists())


def _copy(source: sqlite3.Connection, target: Path) -> None:
    """Copies what the transaction of `source` sees, and forces it to disk."""
    # Nobody else knows this file, and a network file system, where a copy may well go, might have no locks.
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

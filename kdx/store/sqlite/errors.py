"""Translates SQLite's errors into errors of kdx."""

import os
import sqlite3
from pathlib import Path

from kdx.errors import FREE_SPACE, TRY_AGAIN, DatabaseError, KdxError, StorageError
from kdx.store.refusals import absent, contradicting, gone, locked
from kdx.store.sqlite.file import PUT_BACK, damaged, no_database, not_writable

_NOT_OF_KDX = ("malformed JSON", "bad JSON path", "integer overflow", "string or blob too big", "Could not decode")
"""Beginnings of SQLite's messages on a value that a statement of kdx cannot use."""

OF_STATEMENT = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_NOMEM,
}
"""Kinds of errors in a statement, not in the file."""


def translate(error: sqlite3.Error, path: Path, real: Path, patience: float, *, was_open: bool) -> KdxError | None:
    """The error of kdx for an error of SQLite; None if it is a fault of kdx.

    Args:
        real: the file that the path named when it was opened.
        was_open: whether the file was there before.
    """
    code = getattr(error, "sqlite_errorcode", None)
    place = str(path)
    match code and code & 0xFF:  # the low byte is the kind, the rest its detail
        case sqlite3.SQLITE_FULL:
            return StorageError("the disk is full", place=place, hint=FREE_SPACE)
        case sqlite3.SQLITE_IOERR:
            return StorageError(
                f"the disk failed ({getattr(error, 'sqlite_errorname', error)})",
                place=place,
                hint=f"check the disk, {TRY_AGAIN}",
            )
        case sqlite3.SQLITE_NOTADB:
            return no_database(path)
        case sqlite3.SQLITE_CORRUPT:
            return damaged(path)
        case sqlite3.SQLITE_BUSY:
            return locked(place, patience)
        case sqlite3.SQLITE_READONLY if code == sqlite3.SQLITE_READONLY_ROLLBACK:
            return DatabaseError(
                "a writer was killed in mid-write, and undoing its half takes permission to write",
                place=place,
                hint=f"copy it together with {path.name}-journal to a folder of yours",
            )
        case sqlite3.SQLITE_READONLY if code == sqlite3.SQLITE_READONLY_DBMOVED:
            return gone(place, PUT_BACK)
        case sqlite3.SQLITE_READONLY:
            return not_writable(path)
        case sqlite3.SQLITE_CANTOPEN:
            if not os.access(real, os.F_OK):
                return gone(place, PUT_BACK) if was_open else absent(place)
            left = os.statvfs(real.parent)
            if left.f_files and not left.f_favail:  # where there is no fixed number of them, both are 0
                return StorageError(
                    "the disk has no inode left for the journal",
                    place=place,
                    hint=f"remove some files (df -i tells), {TRY_AGAIN}",
                )
            return DatabaseError("the database cannot be opened", place=place, hint="look at its permissions")
        case sqlite3.SQLITE_CONSTRAINT if code != sqlite3.SQLITE_CONSTRAINT_TRIGGER:
            return contradicting(place, str(error))
        case _ if str(error).startswith(_NOT_OF_KDX):
            return DatabaseError(
                f"it holds what kdx never writes: {error}",
                place=place,
                hint="somebody edited the database or made it up; kdx db check tells every such row",
            )
        case _:
            return None

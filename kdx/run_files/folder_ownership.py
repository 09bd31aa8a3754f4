"""Ownership of the folder of run files: a note in it names the database by its id.

A folder is named after its database (`kdx.run_files.files.files_beside`), so another database meets it only if it has
the path of one that was removed or moved away.
"""

import hashlib
import os
from pathlib import Path

from kdx.errors import DatabaseError
from kdx.files import fsync_directory, write_whole
from kdx.run_files.files import files_beside, translate_errors
from kdx.shell import shell_word
from kdx.store import reading, recording
from kdx.store.database import Database
from kdx.store.machine import machine

NOTE = "database-id.txt"
STRANGE = "these are the files of another database"


def take(database: Database) -> str | None:
    """Create the folder of a database's files with a note of its id; return a message for the user, or None.

    The folder of an earlier database here is moved aside, since its weights may be all that is left of it.

    Raises:
        DatabaseError: KDX_FILES names another folder than the one next to the database, which has its files.
        StorageError: the folder cannot be written.
    """
    assert database.id is not None, "not opened"
    files, message = files_beside(database.location), None
    _refuse_left_behind(database)
    if not settled_here(database):
        recording.settle(database, _place(database))
    owner = owner_of(files)
    if owner == database.id:
        return None
    with translate_errors(files):
        if owner is not None:
            aside = files.rename(files.with_name(f"{files.name}-of-{owner[:8]}"))
            message = f"{files} held files of another database that was here before; they are in {aside} now"
        files.mkdir(parents=True, exist_ok=True)
        write_whole(files / NOTE, f"{database.id}\n".encode())
        fsync_directory(files.parent)
    return message


def settled_here(database: Database) -> bool:
    """Return whether the database last kept its files at its present path; if not, somebody has moved or copied it."""
    return reading.place(database) == _place(database)


def owner_of(files: Path) -> str | None:
    """Return the id of the database that owns a folder, from the note in it; None without a note."""
    try:
        return (files / NOTE).read_text(errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_strange(database: Database) -> bool:
    """Return whether the folder next to a database has files of another one."""
    return owner_of(files_beside(database.location)) not in (None, database.id)


def refuse_stranger(database: Database) -> None:
    """Raise DatabaseError if another database owns the folder next to this one."""
    if is_strange(database):
        raise DatabaseError(
            STRANGE,
            place=str(files_beside(database.location)),
            hint="put the folder beside its own database; kdx sweep moves it aside",
        )


def _refuse_left_behind(database: Database) -> None:
    """Raise DatabaseError if KDX_FILES names another folder than the one next to the database, which has its files."""
    if database.file is None:
        return
    beside, files = files_beside(database.file), files_beside(database.location)
    if beside != files and owner_of(beside) == database.id and not files.exists():
        raise DatabaseError(
            f"the files of its runs are in {beside}, and KDX_FILES or --files wants them in {files}",
            place=database.name,
            hint=f"bring them there, or leave KDX_FILES out: mkdir -p -- {shell_word(str(files.parent))} && "
            f"mv -- {shell_word(str(beside))} {shell_word(str(files))}",
        )


def _place(database: Database) -> str:
    # A hash, since databases are shared and paths are private.
    return hashlib.sha256(f"{machine()} {os.path.realpath(database.location)}".encode()).hexdigest()

"""Ownership of the folder of run files: a note in it names one database by id and path.

Two databases with one folder would remove each other's files and load each other's weights.
"""

import hashlib
import json
import os
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from kdx.errors import DatabaseError
from kdx.files import read_file, write_whole
from kdx.run_files.files import files_beside, translate_errors
from kdx.shell import shell_word
from kdx.store import reading, recording
from kdx.store.database import Database, id_of
from kdx.store.machine import machine

NOTE = "database.json"
_LONGEST = 1 << 16  # bytes; a path is no longer than 4096


class Owner(NamedTuple):
    """A database that owns a folder, by the note in it."""

    id: str
    path: Path
    files: Path
    """The folder when the database took it."""

    def is_database(self, other: "Owner") -> bool:
        """Whether both are the same database, and neither is a copy of the other."""
        return (self.id, self.path) == (other.id, other.path)


def take(database: Database) -> str | None:
    """Create the folder of a database's files with a note of its owner; returns a message for the user, or None.

    The folder of another database that was here before is moved aside, since its weights may be all that is left of it.

    Raises:
        DatabaseError: another database uses the folder.
        StorageError: the folder cannot be written.
    """
    files, message = files_beside(database.location), None
    owner, own = _owner(files), _named(database)
    if owner is not None and not owner.is_database(own) and _uses(owner, files):
        raise DatabaseError(
            f"another database keeps the files of its runs here: {owner.path}",
            place=str(files),
            hint="each has a folder of its own: remove the link, move one of the databases elsewhere, or name another "
            "folder with --files or KDX_FILES",
        )
    _refuse_left_behind(database)
    if not settled_here(database):
        recording.settle(database, _place(database))
    if owner == own:
        return None
    with translate_errors(files):
        if owner is not None and owner.id != own.id:
            more = chain([""], map("-{}".format, count(2)))
            names = (files.with_name(f"{files.name}-of-{owner.id[:8]}{number}") for number in more)
            aside = next(name for name in names if not os.path.lexists(name))
            files.rename(aside)
            message = f"{files} held files of another database that was here before; they are in {aside} now"
        files.mkdir(parents=True, exist_ok=True)
        note = {"id": own.id, "path": str(own.path), "files": str(own.files)}
        write_whole(files / NOTE, json.dumps(note).encode())
    return message


def settled_here(database: Database) -> bool:
    """Whether the database last kept its files at its present place, so that it was not passed on since."""
    return reading.place(database) == _place(database)


def stranger(database: Database) -> Owner | None:
    """Return the other database that owns the folder beside this one, or uses it too; None if there is none."""
    owner, own = _owner(files_beside(database.location)), _named(database)
    if owner is None or owner.is_database(own):
        return None
    return owner if owner.id != own.id or _uses(owner, files_beside(database.location)) else None


def _refuse_left_behind(database: Database) -> None:
    """Raise DatabaseError if KDX_FILES names another folder than the one beside the database, which has its files."""
    if database.file is None:
        return
    beside, files = files_beside(database.file), files_beside(database.location)
    owner = _owner(beside)
    ours = beside.is_dir() and (owner is None or owner.id == database.id)
    if beside != files and ours and not files.exists():
        raise DatabaseError(
            f"the files of its runs are in {beside}, and KDX_FILES or --files wants them in {files}",
            place=database.name,
            hint=f"bring them there, or leave KDX_FILES out: mkdir -p -- {shell_word(str(files.parent))} && "
            f"mv -- {shell_word(str(beside))} {shell_word(str(files))}",
        )


def refuse_stranger(database: Database) -> None:
    """Raise DatabaseError if another database owns the folder beside this one."""
    if owner := stranger(database):
        raise DatabaseError(
            f"these are the files of another database, which was at {owner.path}",
            place=str(files_beside(database.location)),
            hint="put the folder beside its own database; kdx doctor tells more",
        )


def _named(database: Database) -> Owner:
    assert database.id is not None, "not opened"
    path, files = database.file or database.location, files_beside(database.location)
    return Owner(database.id, Path(os.path.realpath(path)), Path(os.path.realpath(files)))


def _place(database: Database) -> str:
    # A hash, since databases are passed on and paths are private.
    return hashlib.sha256(f"{machine()} {os.path.realpath(database.location)}".encode()).hexdigest()


def _owner(files: Path) -> Owner | None:
    """Return the owner by the note in the folder; None without a note."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        found = json.loads(read_file(files / NOTE, _LONGEST, follow=False))
        # The id becomes part of a file name, so it must be hexadecimal.
        return Owner(f"{int(found['id'], 16):032x}", Path(found["path"]), Path(found["files"]))
    return None


def _uses(owner: Owner, files: Path) -> bool:
    """Whether that database still exists and has its files in this folder."""
    try:
        return owner.path.is_file() and id_of(owner.path) == owner.id and owner.files.samefile(files)
    except (OSError, ValueError):
        return False

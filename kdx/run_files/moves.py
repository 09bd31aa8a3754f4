"""Moves folders of runs after the database gave their cells other ids, so that a kill leaves nothing half-done.

What is to be moved is written down before the database is changed. Whoever comes next finishes it: where the change was
not committed, nothing was moved and the note goes; else each folder first gets a name of its own, since one may take
the place of another, and then its new one.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from kdx.errors import StorageError
from kdx.files import fsync_directory, read_file, write_whole
from kdx.run_files.files import FOLDER, files_beside, translate_errors
from kdx.store.cell_migrations import was_carried_out
from kdx.store.database import Database

NOTE = "moves.json"
UNFINISHED = "kdx db migrate-cells was killed, or is still at work: folders of runs do not have their new names yet"
FINISH = "kdx doctor --fix moves them; no file is lost"
_LONGEST = 1 << 24  # bytes
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class _Moves:
    """The content of the note."""

    cells: tuple[str, ...]
    """Former ids of the cells."""
    after: int
    """The newest change of ids before this one."""
    folders: tuple[tuple[str, str], ...]
    """Former and new name of each."""
    apart: bool = False
    """Whether every folder has left its former name."""


def intend(database: Database, cells: Sequence[str], after: int, folders: Sequence[tuple[str, str]]) -> None:
    """Writes down what is to be moved, before the database is changed.

    Args:
        cells: former ids of the cells whose ids change.
        after: number of the newest change of ids before this one.
        folders: former and new name of each folder.

    Raises:
        StorageError: the note cannot be written.
    """
    files = files_beside(database.location)
    there = tuple((former, new) for former, new in folders if (files / former).is_dir())
    if there:
        _write(files, _Moves(tuple(cells), after, there))


def finish(database: Database) -> int | None:
    """Moves what the note says; returns the number of folders that it moved, None if no change of ids was left over.

    Raises:
        StorageError: a folder is in the way of another one.
    """
    if _read(files_beside(database.location)) is None:
        return None
    # While the database is locked nobody claims a run and makes its folder.
    with database.write() as connection:
        return finish_locked(database, connection)


def finish_locked(database: Database, connection: Connection) -> int | None:
    """`finish` for a caller who has locked the database, and wants no other change of ids before it is done.

    Raises:
        StorageError: a folder is in the way of another one.
    """
    files, moved = files_beside(database.location), None
    moves = _read(files)
    if moves is None:
        return None
    if was_carried_out(connection, moves.cells, moves.after):
        moved = _carry_out(files, moves)
    with translate_errors(files / NOTE):
        (files / NOTE).unlink(missing_ok=True)
    return moved


def is_unfinished(database: Database) -> bool:
    """Whether the database gave cells other ids, and folders of runs may still have their former names."""
    moves = _read(files_beside(database.location))
    if moves is None:
        return False
    with database.read() as connection:
        return was_carried_out(connection, moves.cells, moves.after)


def refuse_unfinished(database: Database) -> None:
    """Raises StorageError if folders of runs may still have former names, so that files seem to be gone."""
    if is_unfinished(database):
        raise StorageError(UNFINISHED, place=str(files_beside(database.location)), hint=FINISH)


def _carry_out(files: Path, moves: _Moves) -> int:
    """Returns the number of folders that got their new names."""
    moved = 0
    if not moves.apart:
        for former, new in moves.folders:
            if (files / former).is_dir():
                _rename(files, former, _apart(new))
        _write(files, _Moves(moves.cells, moves.after, moves.folders, apart=True))
    for _, new in moves.folders:
        if (files / _apart(new)).is_dir():
            _rename(files, _apart(new), new)
            moved += 1
    fsync_directory(files)
    return moved


def _rename(files: Path, former: str, new: str) -> None:
    with translate_errors(files / former):
        try:
            (files / former).rename(files / new)
        except OSError as error:
            if (files / new).exists():
                raise StorageError(
                    "the files of a renamed cell belong here, and there are others",
                    place=str(files / new),
                    hint=f"move that folder elsewhere, then run the command again; they are in {files / former}",
                ) from error
            raise


def _apart(new: str) -> str:
    return f".moving-{new}"


def _write(files: Path, moves: _Moves) -> None:
    content = {
        "cells": list(moves.cells),
        "after": moves.after,
        "folders": [list(one) for one in moves.folders],
        "apart": moves.apart,
    }
    with translate_errors(files / NOTE):
        write_whole(files / NOTE, json.dumps(content).encode())


def _read(files: Path) -> _Moves | None:
    """The note; None where there is none, or not one that kdx writes: every name in it becomes part of a path."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        found = json.loads(read_file(files / NOTE, _LONGEST, follow=False))
        cells, after, apart = tuple(found["cells"]), found["after"], found["apart"]
        folders = tuple((former, new) for former, new in found["folders"])
        names = all(FOLDER.fullmatch(name) for pair in folders for name in pair)
        if names and all(map(_ID.fullmatch, cells)) and type(after) is int and type(apart) is bool:
            return _Moves(cells, after, folders, apart)
    return None

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

from kdx.errors import StorageError
from kdx.files import fsync_directory, read_file, write_whole
from kdx.run_files.files import FOLDER, files_beside, translate_errors
from kdx.store.cell_migrations import was_carried_out
from kdx.store.database import Database

NOTE = "moves.json"
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


def finish(database: Database) -> int:
    """Moves what the note says, if there is one, and returns the number of folders.

    Raises:
        StorageError: a folder is in the way of another one.
    """
    files = files_beside(database.location)
    moves = _read(files)
    if moves is None:
        return 0
    # While the database is locked nobody claims a run and makes its folder.
    with database.write() as connection:
        if was_carried_out(connection, moves.cells, moves.after):
            _carry_out(files, moves)
        with translate_errors(files / NOTE):
            (files / NOTE).unlink(missing_ok=True)
    return len(moves.folders)


def _carry_out(files: Path, moves: _Moves) -> None:
    if not moves.apart:
        for former, new in moves.folders:
            if (files / former).is_dir():
                _rename(files, former, _apart(new))
        _write(files, _Moves(moves.cells, moves.after, moves.folders, apart=True))
    for _, new in moves.folders:
        if (files / _apart(new)).is_dir():
            _rename(files, _apart(new), new)
    fsync_directory(files)


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

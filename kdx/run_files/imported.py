"""Files of finished runs that were imported from another database; the files are next to that database."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kdx.files import filling, fsync_directory, give_name, open_file, write_whole
from kdx.run_files import files
from kdx.run_files.files import ELSEWHERE, Kind, RunFile, files_beside, is_of, translate_errors
from kdx.run_files.folder_ownership import take
from kdx.store.database import Database
from kdx.store.importing import Folder
from kdx.store.records import RunState


@dataclass(frozen=True)
class Brought:
    """The files of imported runs that were copied, and those that are missing."""

    files: int
    """Number of files that were copied."""
    bytes: int
    elsewhere: tuple[Folder, ...]
    """Completed runs whose weights are only beside the other database, which a note in the run's folder names."""


def bring(database: Database, folders: Sequence[Folder], *, copy: bool) -> Brought:
    """Copy weights and logs of finished runs, or leave a note that says where they are.

    Existing files stay as they are; a second call copies only what is missing.

    Args:
        copy: whether to copy files.

    Raises:
        DatabaseError: another database uses the folder of files, which KDX_FILES names.
        StorageError: a file cannot be read, does not match its checksum, or cannot be written.
    """
    target = files_beside(database.location)
    count, size, taken = 0, 0, False
    elsewhere: list[Folder] = []
    for folder in folders:
        source = files_beside(folder.source)
        here = files.listing_of(target, folder.name)
        names = {file.name for file in here}
        there = files.listing_of(source, folder.name)
        new = [file for file in there if copy and file.name not in names]
        missing = [file for file in new if file.kind is Kind.LOG or is_of(file, folder.weights)]
        noted = any(file.kind is Kind.NOTE for file in here)
        has_here, has_there = (any(is_of(file, folder.weights) for file in some) for some in ((*here, *missing), there))
        lost = folder.state is RunState.COMPLETED and has_there and not has_here
        if (missing or (lost and not noted)) and not taken:
            take(database)
            taken = True
        for file in missing:
            _copy(source / folder.name / file.name, target / folder.name / file.name, file, source)
            count, size = count + 1, size + file.size
        if lost:
            elsewhere.append(folder)
            if not noted:
                _leave_word(target / folder.name, folder)
    return Brought(count, size, tuple(elsewhere))


def _copy(source: Path, target: Path, file: RunFile, folder: Path) -> None:
    with translate_errors(target):
        target.parent.mkdir(exist_ok=True)
        with filling(target.parent) as unfinished:
            with unfinished.open("wb") as writer:
                if file.sha256 is None:
                    with open_file(source, follow=False) as reader:
                        shutil.copyfileobj(reader, writer)
                else:
                    for part in files.content(folder, file):
                        writer.write(part)
                writer.flush()
                os.fsync(writer.fileno())
            with suppress(FileExistsError):
                give_name(unfinished, target)
        fsync_directory(target.parent)


def _leave_word(folder: Path, run: Folder) -> None:
    text = f"This run was imported from {run.source}, beside which its weights lay: {run.name}\n"
    with translate_errors(folder):
        folder.mkdir(exist_ok=True)
        write_whole(folder / ELSEWHERE, text.encode(errors="surrogateescape"))

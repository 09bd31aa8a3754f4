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

    Existing files stay as they are, but for the log of a run that was replaced; a second call copies only what is
    missing.

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
        listed = files.listing_of(target, folder.name)
        # The log of an attempt whose rows were replaced.
        old = [file for file in listed if folder.replaces and file.kind is Kind.LOG]
        here = [file for file in listed if file not in old]
        names = {file.name for file in here}
        there = files.listing_of(source, folder.name)
        new = [file for file in there if copy and file.name not in names]
        missing = [file for file in new if file.kind is Kind.LOG or is_of(file, folder.weights)]
        noted = any(file.kind is Kind.NOTE for file in here)
        has_here, has_there = (any(is_of(file, folder.weights) for file in some) for some in ((*here, *missing), there))
        elsewhere += [folder] if folder.state is RunState.COMPLETED and has_there and not has_here else []
        # Of a run that came without weights none are lost here; of one that was here already they may be.
        to_note = folder.state is RunState.COMPLETED and not has_here and not noted and (has_there or folder.came)
        if (missing or to_note or old) and not taken:
            take(database)
            taken = True
        for file in old:
            files.remove(target, file, leave_word=False)
        for file in missing:
            _copy(source / folder.name / file.name, target / folder.name / file.name, file, source)
            count, size = count + 1, size + file.size
        if to_note:
            lay = "lay" if has_there else "were not"
            _leave_word(
                target / folder.name, f"This run was imported from {folder.source}, beside which its weights {lay}"
            )
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


def _leave_word(folder: Path, where: str) -> None:
    text = f"{where}: {folder.name}\n"
    with translate_errors(folder):
        folder.mkdir(exist_ok=True)
        write_whole(folder / ELSEWHERE, text.encode(errors="surrogateescape"))

"""Files of runs that came from another database, beside which they lie."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kdx.files import filling, fsync_directory, give_name, open_file, write_whole
from kdx.run_files import files
from kdx.run_files.files import ELSEWHERE, Kind, RunFile, files_beside, translate_errors
from kdx.run_files.folder_ownership import take
from kdx.store.database import Database
from kdx.store.merging import Folders
from kdx.store.records import FINAL, RunState


@dataclass(frozen=True)
class Brought:
    """What is there of the files of merged runs."""

    files: int
    """How many were copied."""
    bytes: int
    elsewhere: tuple[Folders, ...]
    """Completed runs whose weights are not here; a note says where the run came from."""
    checkpoints: tuple[Folders, ...]
    """Unfinished runs that came without the checkpoint that they would go on from."""


def bring(database: Database, folders: Sequence[Folders], *, copy: bool) -> Brought:
    """Copies files of runs that came from other databases, or leaves word where they are, so that none is missed.

    What is there already stays as it is; once more, it copies what is missing.

    Args:
        copy: whether files are copied.

    Raises:
        DatabaseError: another database uses the folder of files.
        StorageError: a file cannot be read, does not match its checksum, or cannot be written.
    """
    target = files_beside(database.location)
    count, size, taken = 0, 0, False
    elsewhere: dict[str, Folders] = {}
    checkpoints: dict[str, Folders] = {}
    for one in folders:
        source = files_beside(one.source)
        here = files.listing_of(target, one.new)
        wanted = [each for each in files.listing_of(source, one.former) if copy and _is_wanted(each, one)]
        missing = [each for each in wanted if each.name not in {file.name for file in here}]
        noted = any(each.kind in (Kind.REMOVED, Kind.ELSEWHERE) for each in here)
        lost = one.state is RunState.COMPLETED and not any(_is_weights(each, one) for each in (*here, *missing))
        stopped = one.state not in FINAL and one.came and not any(each.resume_step for each in (*here, *missing))
        if (missing or (lost and not noted)) and not taken:
            take(database)
            taken = True
        for each in missing:
            _copy(source / one.former / each.name, target / one.new / each.name, each, source)
            count, size = count + 1, size + each.size
        if lost:
            elsewhere.setdefault(one.new, one)
            if not noted:
                _leave_word(target / one.new, one)
        else:
            elsewhere.pop(one.new, None)
        if stopped:
            checkpoints[one.new] = one
    return Brought(count, size, tuple(elsewhere.values()), tuple(checkpoints.values()))


def _is_weights(file: RunFile, run: Folders) -> bool:
    return file.kind is Kind.WEIGHTS and run.weights in (None, file.sha256)


def _is_wanted(file: RunFile, run: Folders) -> bool:
    if run.state in FINAL:
        return _is_weights(file, run) or file.kind is Kind.LOG
    # Where the run was further here, its own checkpoints count.
    return run.came and file.kind in (Kind.CHECKPOINT, Kind.LOG)


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


def _leave_word(folder: Path, run: Folders) -> None:
    text = f"This run was merged from {run.source}, beside which its weights lay: {run.former}\n"
    with translate_errors(folder):
        folder.mkdir(exist_ok=True)
        write_whole(folder / ELSEWHERE, text.encode(errors="surrogateescape"))

"""Lists, reads, renames and removes the files of runs.

All files of a database lie in one folder beside it, with a subfolder for each run and generation. The folder belongs to
one database (`kdx.run_files.folder_ownership`) and may be a link to another disk; links below it are not followed, and
kdx never touches a file that it did not name.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kdx.checkpoint_names import CheckpointKind, CheckpointName, is_set_aside, set_aside_name
from kdx.errors import KdxError, StorageError, of_the_machine
from kdx.files import is_unfinished, open_file
from kdx.store.records import RunRecord, folder_name

FOLDER = re.compile(r"[0-9a-f]{32}-\d+-\d+(-[0-9a-f]{32})?", re.ASCII)
"""The names of the folders of runs."""
_LOG = "log.txt"
_REMOVED = "weights-removed.txt"
ELSEWHERE = "weights-elsewhere.txt"
"""The note of a run that was imported from another database; it says whether its weights lay beside that one."""


class Kind(StrEnum):
    """The kinds of files of a run."""

    CHECKPOINT = "checkpoint"
    """The run can be resumed from it, or needs it for that."""
    WEIGHTS = "weights"
    """The tested weights, which a finished run keeps."""
    STATE = "state"
    """What a run of more steps continues from, which a finished run keeps on request."""
    HALF_WRITTEN = "half-written"
    SET_ASIDE = "set aside"
    """The file did not match its checksum."""
    LOG = "log"
    NOTE = "note"
    """It says why the weights are not here: they were removed on purpose, or lie beside another database."""
    OTHER = "other"
    """A file that is not of kdx."""


_KINDS = {
    CheckpointKind.STEP: Kind.CHECKPOINT,
    CheckpointKind.WEIGHTS: Kind.CHECKPOINT,
    CheckpointKind.BEST: Kind.WEIGHTS,
    CheckpointKind.AVERAGE: Kind.WEIGHTS,
    CheckpointKind.SHARED: Kind.STATE,
}


@dataclass(frozen=True, order=True)
class RunFile:
    """A file in the folder of a run."""

    folder: str
    """The name of the run's folder."""
    name: str
    size: int
    """Size in bytes."""

    @property
    def checkpoint(self) -> CheckpointName | None:
        """The parsed name; None if it is not that of a checkpoint."""
        return CheckpointName.parse(self.name)

    @property
    def sha256(self) -> str | None:
        """The hash of the content that is in the name; None if the name has none."""
        return self.checkpoint and self.checkpoint.sha256

    @property
    def resume_step(self) -> int | None:
        """The step from which a run can be resumed with this file; None if it cannot."""
        name = self.checkpoint
        return name.step if name and name.kind is CheckpointKind.STEP else None

    @property
    def shared_step(self) -> int | None:
        """The step from which a run of more steps can continue with this file; None if it cannot."""
        name = self.checkpoint
        return name.step if name and name.kind is CheckpointKind.SHARED else None

    @property
    def kind(self) -> Kind:
        """The kind of the file, by its name."""
        if name := self.checkpoint:
            return _KINDS[name.kind]
        if is_set_aside(self.name):
            return Kind.SET_ASIDE
        if is_unfinished(self.name):
            return Kind.HALF_WRITTEN
        return {_LOG: Kind.LOG, _REMOVED: Kind.NOTE, ELSEWHERE: Kind.NOTE}.get(self.name, Kind.OTHER)


def files_beside(database: Path) -> Path:
    """Return the folder with the files of a database's runs: `a.files` for `a.db`, `a.sqlite-files` for `a.sqlite`.

    It lies beside the file itself, not beside a link to it.
    """
    if database.is_symlink():
        database = Path(os.path.realpath(database))
    return database.with_suffix(".files") if database.suffix == ".db" else database.with_name(f"{database.name}-files")


def folder_of(run: RunRecord) -> str:
    """Return the name of a run's folder, checked so that no record can lead out of the folder of files.

    Raises:
        KdxError: kdx never writes such a record.
    """
    name = folder_name(run.cell_id, run.seed, run.generation, run.search_id)
    if not FOLDER.fullmatch(name):
        raise KdxError(f"run {run.id} has the cell id, seed and generation `{name}`", hint="kdx db check tells more")
    return name


def log_of(files: Path, run: RunRecord) -> Path:
    """Return the path of a run's log, which need not exist."""
    return files / folder_of(run) / _LOG


def files_of(files: Path, run: RunRecord) -> tuple[RunFile, ...]:
    """Return the files of a run, sorted; files that vanish meanwhile are left out."""
    return listing_of(files, folder_of(run))


def final_weights(files: Path, run: RunRecord) -> RunFile | None:
    """Return the file with the tested weights of a finished run; None if it has no such file."""
    return next((file for file in files_of(files, run) if is_of(file, run.weights_sha256)), None)


def refuse_absent(files: Path) -> None:
    """Raise KdxError if the folder of files does not exist, as where only the database was copied."""
    if not files.is_dir():
        raise KdxError(
            "the folder with the files of its runs is missing",
            place=str(files),
            hint="keep it beside the database, or name the folder that has it with --files or KDX_FILES",
        )


def is_of(file: RunFile, sha256: str | None) -> bool:
    """Return whether a file holds the weights of which this is the recorded hash; any do where none is recorded."""
    return file.kind is Kind.WEIGHTS and sha256 in (None, file.sha256)


def resume_step(files: Path, run: RunRecord) -> int | None:
    """Return the step of the newest checkpoint from which a run can be resumed, by its name; None without one.

    A checkpoint beyond the rows of the run does not count, since it belongs to a newer copy of the database.
    """
    steps = (file.resume_step for file in files_of(files, run))
    return max((step for step in steps if step is not None and step <= run.progress_step), default=None)


def content(files: Path, file: RunFile) -> Iterator[bytes]:
    """Read a checkpoint or weights file in parts.

    Raises:
        StorageError: the file cannot be read, or does not match the checksum in its name; the latter is raised after
            the last part.
    """
    path, digest = files / file.folder / file.name, hashlib.sha256()
    try:
        with open_file(path, follow=False) as source:
            while part := source.read(1 << 20):
                digest.update(part)
                yield part
    except OSError as error:
        raise StorageError(f"this file cannot be read: {error.strerror}", place=str(path)) from error
    if digest.hexdigest() != file.sha256:
        raise StorageError("this file does not match its checksum", place=str(path), hint="kdx doctor looks after it")


def listing(files: Path) -> tuple[RunFile, ...]:
    """Return every file of every run, sorted; files that vanish meanwhile are left out."""
    folders = (entry.name for entry in _entries(files))
    return tuple(sorted(file for folder in folders for file in listing_of(files, folder)))


def listing_of(files: Path, folder: str) -> tuple[RunFile, ...]:
    """Return every file in one folder of a run, sorted; none if no folder of a run can have this name."""
    if not FOLDER.fullmatch(folder) or (files / folder).is_symlink():
        return ()
    files_of_run = []
    for file in _entries(files / folder):
        with contextlib.suppress(FileNotFoundError):
            if file.is_file(follow_symlinks=False):
                files_of_run.append(RunFile(folder, file.name, file.stat(follow_symlinks=False).st_size))
    return tuple(sorted(files_of_run))


def damaged(files: Path, listed: Iterable[RunFile]) -> frozenset[RunFile]:
    """Return the files whose content does not match the checksum in their name, or cannot be read."""
    return frozenset(file for file in listed if file.sha256 is not None and _is_damaged(files, file))


def _is_damaged(files: Path, file: RunFile) -> bool:
    try:
        for _ in content(files, file):
            pass
    except StorageError as error:
        return not isinstance(error.__cause__, FileNotFoundError)
    return False


def set_aside(files: Path, file: RunFile) -> None:
    """Rename the file so that it stays for inspection and no run reads it again.

    Raises:
        StorageError: it cannot be renamed.
    """
    path = files / file.folder / file.name
    with translate_errors(path):
        path.rename(path.with_name(set_aside_name(file.name)))


def remove(files: Path, file: RunFile, *, leave_word: bool) -> None:
    """Remove the file, and with the last file its folder.

    Args:
        leave_word: whether to leave a note that weights were removed on purpose.

    Raises:
        StorageError: it cannot be removed.
    """
    folder = files / file.folder
    with translate_errors(folder / file.name):
        if leave_word and file.kind is Kind.WEIGHTS:
            os.close(os.open(folder / _REMOVED, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644))
        (folder / file.name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise AccessError or StorageError for an OSError in the block."""
    try:
        yield
    except OSError as error:
        other = StorageError(f"this file cannot be changed: {error.strerror}", place=str(path))
        raise of_the_machine(error, str(path)) or other from error


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []

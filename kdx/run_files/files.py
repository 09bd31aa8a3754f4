"""The files of runs: what each is, and the few things that are done to them.

They lie in one folder beside the database, in a folder for each run and generation, named by both. It belongs to one
database (`kdx.run_files.folder_ownership`) and may be a link to another disk; no link below it is followed, and nothing
that kdx did not name is ever touched.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kdx.checkpoint_names import CheckpointKind, CheckpointName, is_half_written, is_set_aside, set_aside_name
from kdx.errors import KdxError, StorageError, of_the_machine
from kdx.files import open_file
from kdx.store.records import RunRecord

_FOLDER = re.compile(r"[0-9a-f]{32}-\d+-\d+")
_TO_GO_ON = frozenset({CheckpointKind.STEP, CheckpointKind.WEIGHTS, CheckpointKind.COPY})
_LOG = "log.txt"
_REMOVED = "weights-removed.txt"


class Kind(StrEnum):
    """What a file of a run is."""

    CHECKPOINT = "checkpoint"
    """To go on from, or needed for that."""
    WEIGHTS = "weights"
    """What a finished run keeps: the weights that were tested."""
    HALF_WRITTEN = "half-written"
    SET_ASIDE = "set aside"
    """It did not match its checksum."""
    LOG = "log"
    REMOVED = "removed"
    """Says that the weights were removed on purpose."""
    OTHER = "other"
    """Not of kdx."""


@dataclass(frozen=True, order=True)
class RunFile:
    """A file in the folder of a run."""

    folder: str
    """Name of that folder."""
    name: str
    size: int
    """In bytes."""

    @property
    def checkpoint(self) -> CheckpointName | None:
        """What its name says; None where it is no checkpoint's."""
        return CheckpointName.parse(self.name)

    @property
    def sha256(self) -> str | None:
        """Of its content, as its name tells; None where it tells none."""
        return self.checkpoint and self.checkpoint.sha256

    @property
    def resume_step(self) -> int | None:
        """The step that a run can go on from by it; None where it can not."""
        name = self.checkpoint
        return name.step if name and name.kind is CheckpointKind.STEP else None

    @property
    def kind(self) -> Kind:
        """By its name."""
        if name := self.checkpoint:
            return Kind.CHECKPOINT if name.kind in _TO_GO_ON else Kind.WEIGHTS
        if is_set_aside(self.name):
            return Kind.SET_ASIDE
        if is_half_written(self.name):
            return Kind.HALF_WRITTEN
        return {_LOG: Kind.LOG, _REMOVED: Kind.REMOVED}.get(self.name, Kind.OTHER)


def files_beside(database: Path) -> Path:
    """The folder of the files of a database's runs: `a.files` of `a.db`, `a.sqlite-files` of `a.sqlite`.

    It lies beside the file itself, whatever links lead to it.
    """
    if database.is_symlink():
        database = Path(os.path.realpath(database))
    return database.with_suffix(".files") if database.suffix == ".db" else database.with_name(f"{database.name}-files")


def folder_of(run: RunRecord) -> str:
    """Name of the folder of a run, which lies below the folder of files whatever the record says.

    Raises:
        KdxError: the record is not one of kdx.
    """
    name = f"{run.cell_id}-{run.seed}-{run.generation}"
    if not _FOLDER.fullmatch(name):
        raise KdxError(f"run {run.id} has the cell id, seed and generation `{name}`", hint="kdx db check tells more")
    return name


def final_weights(files: Path, run: RunRecord) -> RunFile | None:
    """The file with the weights that a finished run was tested with; None where it has none, or none any more."""
    return next((file for file in _listing_of(files, folder_of(run)) if is_of(file, run)), None)


def has_weights(files: Path, run: RunRecord) -> bool:
    """Whether a finished run still has the weights that it was tested with."""
    return final_weights(files, run) is not None


def is_of(file: RunFile, run: RunRecord) -> bool:
    """Whether a file holds the weights that this run was tested with, as far as the run knows."""
    return file.kind is Kind.WEIGHTS and run.weights_sha256 in (None, file.sha256)


def resume_step(files: Path, run: RunRecord) -> int | None:
    """The step of the newest checkpoint that a run can go on from, as the names of its files tell; None: it has none.

    One beyond the rows of the run is not counted; it belongs to a newer copy of the database.
    """
    steps = (file.resume_step for file in _listing_of(files, folder_of(run)))
    return max((step for step in steps if step is not None and step <= run.progress_step), default=None)


def content(files: Path, file: RunFile) -> Iterator[bytes]:
    """What a checkpoint or weights file holds, in parts.

    Raises:
        StorageError: it cannot be read, or, told after the last part, it does not match the checksum in its name.
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
    """Every file of every run, sorted; what vanishes meanwhile is left out."""
    found: list[RunFile] = []
    for folder in _entries(files):
        if not _FOLDER.fullmatch(folder.name) or not folder.is_dir(follow_symlinks=False):
            continue
        found += _listing_of(files, folder.name)
    return tuple(sorted(found))


def damaged(files: Path, listed: Iterable[RunFile]) -> frozenset[RunFile]:
    """Those whose content does not match the checksum in their name, or cannot be read at all."""
    bad = set()
    for each in listed:
        if each.sha256 is None:
            continue
        try:
            with open_file(files / each.folder / each.name, follow=False) as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            continue
        except OSError:
            content = ""
        if content != each.sha256:
            bad.add(each)
    return frozenset(bad)


def set_aside(files: Path, file: RunFile) -> None:
    """Keeps the file for whoever wants to know; no run will read it again.

    Raises:
        StorageError: it cannot be renamed.
    """
    path = files / file.folder / file.name
    with translate_errors(path):
        path.rename(path.with_name(set_aside_name(file.name)))


def remove(files: Path, file: RunFile, *, leave_word: bool) -> None:
    """Removes the file, and its folder with the last one.

    Args:
        leave_word: whether weights leave a file behind that says that they were removed on purpose.

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


def _listing_of(files: Path, folder: str) -> Iterator[RunFile]:
    for file in [] if (files / folder).is_symlink() else _entries(files / folder):
        with contextlib.suppress(FileNotFoundError):
            if file.is_file(follow_symlinks=False):
                yield RunFile(folder, file.name, file.stat(follow_symlinks=False).st_size)


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raises AccessError or StorageError where something in the block cannot be done to the file."""
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

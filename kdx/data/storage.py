"""The place of data, and atomic creation of folders there."""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from platformdirs import user_data_path

from kdx.errors import AccessError, StorageError
from kdx.files import filling, give_name


def data_home() -> Path:
    """Return the folder of prepared text and of the cache: KDX_DATA, else `kdx` in the user's data folder."""
    home = os.environ.get("KDX_DATA")
    try:
        if home:
            return Path(home).expanduser()
        Path.home()  # raises without a home; platformdirs would name a folder `~` in the current one
        return user_data_path("kdx")
    except RuntimeError:
        # A user without a home, as in some containers, has no data and cannot write any.
        return Path(os.devnull) / "kdx"


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Create an empty folder that is renamed to `folder` when the block ends, and removed on an exception.

    If another process made `folder` in the meantime, that folder stays.

    Raises:
        AccessError: the place may not be written.
        StorageError: the disk is full, or the place cannot be written for another reason.
    """
    with translate_disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Unlike a folder of tempfile, everybody can read this one, since a team may share a data home.
        with filling(folder.parent, folder=True) as unfinished:
            yield unfinished
            for path in unfinished.iterdir():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            with suppress(FileExistsError):
                give_name(unfinished, folder)


@contextmanager
def translate_disk_errors(path: Path) -> Iterator[None]:
    """Raise errors of the disk in this block as errors of kdx that name `path`.

    Raises:
        AccessError: the place may not be written.
        StorageError: the disk is full, or the place cannot be written for another reason.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        kind = AccessError if isinstance(error, PermissionError) else StorageError
        raise kind(
            f"cannot write {path}: {error.strerror or error}",
            hint=f"{'free some space' if full else 'repair it'}, or set KDX_DATA to a folder elsewhere",
        ) from error


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

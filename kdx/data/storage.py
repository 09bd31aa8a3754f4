"""Where data lies, and how a folder there comes into being whole or not at all."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from platformdirs import user_data_path

from kdx.errors import AccessError, StorageError
from kdx.files import filling, give_name, nameless


def data_home() -> Path:
    """The folder of prepared text and of the cache: KDX_DATA, else `kdx` in the user's data folder."""
    home = os.environ.get("KDX_DATA")
    try:
        if home:
            return Path(home).expanduser()
        Path.home()  # which platformdirs does not ask: without a home it would name a folder `~` in this one
        return user_data_path("kdx")
    except RuntimeError:
        # This user has no home, as in some containers: nothing is there, and nothing can be written.
        return Path(os.devnull) / "kdx"


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to be filled, which takes the name `folder` when the block ends well and vanishes when it does not.

    Where another process made `folder` in the meantime, that one stands.

    Raises:
        AccessError: the place may not be written.
        StorageError: the disk is full, or the place cannot be written for another reason.
    """
    with told_of_disk(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Of a name that all may read, unlike those of tempfile: a data home may be a team's.
        with filling(folder.parent, folder=True) as unfinished:
            yield unfinished
            for path in unfinished.iterdir():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            with suppress(FileExistsError):
                give_name(unfinished, folder)


@contextmanager
def told_of_disk(path: Path) -> Iterator[None]:
    """Says of `path` what fails on the disk in this block.

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
            hint=f"{'free some space' if full else 'mend it'}, or set KDX_DATA to a folder elsewhere",
        ) from error


def remove_folder(folder: Path) -> None:
    """Takes the name away first, so that nobody meets a folder that is half gone.

    One that is not there, or that cannot be moved, is left to what is done next in its place.
    """
    leaving = nameless(folder.parent)
    with suppress(OSError):
        folder.rename(leaving)
        if leaving.is_dir():
            shutil.rmtree(leaving, ignore_errors=True)
        else:
            leaving.unlink()

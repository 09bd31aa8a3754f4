"""Checkpoint files that are either whole or absent.

A file is written whole under a name that carries its kind, its step and the SHA-256 of its content
(`kdx.checkpoint_names`), so one rename publishes file and checksum together. On reading, the content must match the
name: of 300 single flipped bits, torch.load alone accepted 283 with wrong weights.

Two resume checkpoints are kept, with the weights files that they list. Weights inside a checkpoint would be written
again with each one: for the mean of k validations (10 or 20 in the papers' recipes), that is k times the model.
"""

import errno
import hashlib
import io
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import CheckpointIO

from kdx.checkpoint_names import CheckpointKind, CheckpointName, set_aside_name
from kdx.errors import StorageError
from kdx.files import NotAFileError, fsync_directory, is_unfinished, open_file, write_whole

STATE_KEY = "kdx/1"
"""The name of kdx's own state in a resume checkpoint, see `kdx.training.lifecycle.Lifecycle.state_dict`."""
KEPT = 2  # resume checkpoints; if the newest turns out to be damaged, the one before it serves
_DAMAGED = {errno.EIO, errno.EBADMSG, errno.EUCLEAN}  # errors of a disk that cannot return what was written to it


class CheckpointFiles(CheckpointIO):
    """The checkpoints of one run, in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.aside: dict[str, str] = {}
        """Name of a file that was set aside → why."""

    def write(self, kind: CheckpointKind, step: int, state: Mapping[str, Any]) -> Path:
        """Publish `state` as a file of this kind."""
        self.folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        content = buffer.getbuffer()
        path = self.folder / str(CheckpointName(kind, step, hashlib.sha256(content).hexdigest()))
        write_whole(path, content)
        return path

    def publish_as(self, kind: CheckpointKind, name: str) -> Path:
        """Publish a file of this folder as one of another kind too; its content is not written again."""
        path = self.folder / name
        published = path.with_name(str(name_of(path)._replace(kind=kind)))
        try:
            published.hardlink_to(path)
        except OSError:  # some file systems have no links
            write_whole(published, path.read_bytes())
        fsync_directory(self.folder)
        return published

    def read(self, path: Path) -> dict[str, Any] | None:
        """Return the state in a file; if it does not match its name or form, set it aside and return None.

        Raises:
            FileNotFoundError: the file does not exist.
            StorageError: the file cannot be set aside.
        """
        content = self._content(path)
        if content is None:
            return None
        try:
            return unpacked(content)
        except ValueError:  # the file is whole, so another program or another torch wrote it
            self.set_aside(path)
            return None

    def is_whole(self, name: str) -> bool:
        """Return whether the weights file of this name exists and is whole; a damaged one is set aside."""
        path = self.folder / name
        return CheckpointName.parse(name) is not None and path.exists() and self._content(path) is not None

    def load(self, path: Path) -> dict[str, Any]:
        """Return the state in a file that an active run relies on.

        Raises:
            StorageError: the file does not exist, or is damaged.
        """
        try:
            state = self.read(path)
        except FileNotFoundError:
            state = None
        if state is None:
            raise StorageError(
                "this checkpoint was damaged or removed while its run was at work",
                place=str(path),
                hint="check the disk; kdx resume continues from an older one",
            )
        return state

    def _content(self, path: Path) -> bytes | None:
        """Return the content of a file; if it does not match the hash in its name, set it aside and return None."""
        try:
            with open_file(path) as file:
                content = file.read()
        except NotAFileError:
            content = b""
        except OSError as error:
            if error.errno not in _DAMAGED:
                raise
            content = b""
        if hashlib.sha256(content).hexdigest() != name_of(path).sha256:
            self.set_aside(path)
            return None
        return content

    def set_aside(self, path: Path, why: str = "was damaged") -> None:
        """Rename the file so that it is kept for inspection but never read again.

        Raises:
            StorageError: the file cannot be renamed.
        """
        try:
            path.rename(path.with_name(set_aside_name(path.name)))
        except OSError as error:
            raise StorageError(
                f"this checkpoint {why}, and cannot be set aside: {error.strerror}",
                place=str(path),
                hint="make its folder writable, or remove the file; then kdx resume",
            ) from error
        self.aside[path.name] = why

    def newest_first(self, kind: CheckpointKind) -> list[Path]:
        """Return the files of a kind, highest step first."""
        if not self.folder.is_dir():
            return []
        names = [(name, path) for path in self.folder.iterdir() if (name := CheckpointName.parse(path.name))]
        steps = [(name.step, path) for name, path in names if name.kind == kind]
        return [path for _, path in sorted(steps, reverse=True)]

    def keep(self, kind: CheckpointKind, kept: Collection[str] = ()) -> None:
        """Remove all files of a kind except those with these names."""
        for path in self.newest_first(kind):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed writers left behind; the caller owns the run."""
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if is_unfinished(path.name):
                path.unlink(missing_ok=True)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        """Write a checkpoint for Lightning; the path that it gives is not used."""
        kind = CheckpointKind.STEP
        self.write(kind, checkpoint["global_step"], checkpoint)
        self.keep(kind, [path.name for path in self.newest_first(kind)[:KEPT]])

    def load_checkpoint(self, path: Any, map_location: Any | None = None, weights_only: bool | None = None) -> Any:
        """Read a checkpoint for Lightning; `run.train` has verified the file before."""
        return self.load(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        """Remove a checkpoint for Lightning."""
        Path(path).unlink(missing_ok=True)


def name_of(path: Path) -> CheckpointName:
    """Return the parsed name of a checkpoint file."""
    name = CheckpointName.parse(path.name)
    assert name is not None, path
    return name


def unpacked(content: bytes) -> dict[str, Any]:
    """Return the state that `CheckpointFiles.write` wrote, without running code that is in it.

    Raises:
        ValueError: the content is anything else.
    """
    try:
        return dict(torch.load(io.BytesIO(content), map_location="cpu", weights_only=True))
    except MemoryError:
        raise
    except Exception as error:  # any kind, depending on what is in the file
        raise ValueError("neither weights nor a checkpoint") from error

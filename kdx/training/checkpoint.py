"""Checkpoint files that are whole or not there.

A file is written whole under a name that carries its kind, its step and the SHA-256 of its content
(`kdx.checkpoint_names`), so one rename publishes file and checksum together. On reading, the content must match the
name: of 300 single flipped bits, torch.load alone accepted 283 with wrong weights.

Two resume checkpoints are kept, and the weights files that they list. Weights within the checkpoints would be written
again with each: for the mean of k validations, which is 10 or 20 in the papers' recipes, that is k times the model.
"""

import errno
import hashlib
import io
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import CheckpointIO

from kdx.checkpoint_names import CheckpointKind, CheckpointName, set_aside_name
from kdx.errors import StorageError
from kdx.files import is_unfinished, open_file, write_whole

KEPT = 2  # resume checkpoints; should the newest turn out bad, the one before serves
# Of a file that cannot be opened these say nothing: its mode forbids it, or this process has no more to spend.
_NOT_OF_THE_FILE = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class CheckpointFiles(CheckpointIO):
    """The checkpoints of one run, in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.aside: dict[str, str] = {}
        """What was set aside → why."""

    def write(self, kind: CheckpointKind, step: int, state: Mapping[str, Any]) -> Path:
        """Publish `state` as a file of this kind."""
        self.folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        content = buffer.getbuffer()
        path = self.folder / str(CheckpointName(kind, step, hashlib.sha256(content).hexdigest()))
        write_whole(path, content)
        return path

    def read(self, path: Path) -> dict[str, Any] | None:
        """The state in a file; None, and the file set aside as `.corrupt`, when it does not match its name or form.

        Raises:
            FileNotFoundError: it is not there.
            StorageError: it cannot be set aside.
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
        """Whether the weights file of this name is there and whole; one that is not whole is set aside."""
        path = self.folder / name
        return CheckpointName.parse(name) is not None and path.exists() and self._content(path) is not None

    def load(self, path: Path) -> dict[str, Any]:
        """Return the state in a file that a run at work relies on.

        Raises:
            StorageError: it is not there, or not whole.
        """
        try:
            state = self.read(path)
        except FileNotFoundError:
            state = None
        if state is None:
            raise StorageError(
                "this checkpoint was damaged or removed while its run was at work",
                place=str(path),
                hint="look after the disk; kdx resume goes on from an older one",
            )
        return state

    def _content(self, path: Path) -> bytes | None:
        """What is in a file; None, and it is set aside, where that does not match its name or cannot be read."""
        name = CheckpointName.parse(path.name)
        try:
            with open_file(path, follow=False) as file:
                content = file.read()
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in _NOT_OF_THE_FILE:
                raise
            content = None
        if content is None or name is None or hashlib.sha256(content).hexdigest() != name.sha256:
            self.set_aside(path)
            return None
        return content

    def set_aside(self, path: Path, why: str = "was damaged") -> None:
        """Keep the file for whoever wants to know, but never read it again.

        Raises:
            StorageError: its folder does not let it be renamed.
        """
        try:
            path.rename(path.with_name(set_aside_name(path.name)))
        except OSError as error:
            raise StorageError(
                f"this checkpoint {why}, and cannot be set aside: {error.strerror}",
                place=str(path),
                hint="see that its folder can be written, or remove the file; then kdx resume",
            ) from error
        self.aside[path.name] = why

    def newest_first(self, kind: CheckpointKind) -> list[Path]:
        """The files of a kind, highest step first."""
        if not self.folder.is_dir():
            return []
        found = [(name, path) for path in self.folder.iterdir() if (name := CheckpointName.parse(path.name))]
        steps = [(name.step, path) for name, path in found if name.kind == kind]
        return [path for _, path in sorted(steps, reverse=True)]

    def keep(self, kind: CheckpointKind, kept: Collection[str] = ()) -> None:
        """Remove all files of a kind but those of these names."""
        for path in self.newest_first(kind):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed writers left behind; the caller owns the run."""
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if is_unfinished(path.name):
                path.unlink(missing_ok=True)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        """Lightning's way in; the path that it gives is not used."""
        kind = CheckpointKind.STEP
        self.write(kind, checkpoint["global_step"], checkpoint)
        self.keep(kind, [path.name for path in self.newest_first(kind)[:KEPT]])

    def load_checkpoint(self, path: Any, map_location: Any | None = None, weights_only: bool | None = None) -> Any:
        """Lightning's way out; `run.train` has verified the file before."""
        return self.load(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        """Lightning's way to delete."""
        Path(path).unlink(missing_ok=True)


def name_of(path: Path) -> CheckpointName:
    """What the name of a checkpoint file says."""
    name = CheckpointName.parse(path.name)
    assert name is not None, path
    return name


def unpacked(content: bytes) -> dict[str, Any]:
    """What `CheckpointFiles.write` has packed; nothing in it is run.

    Raises:
        ValueError: it is anything else.
    """
    try:
        # torch.save compresses nothing, so what is in the file is as long as the file; a bomb is not.
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > len(content):
                raise ValueError("more in it than it is long")
        return dict(torch.load(io.BytesIO(content), map_location="cpu", weights_only=True))
    except MemoryError:
        raise
    except Exception as error:  # of any kind, by what is in the file
        raise ValueError("neither weights nor a checkpoint") from error

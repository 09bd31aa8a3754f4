"""Checkpoint files that are whole or not there.

A file is written whole under a name that carries its kind, its step and the SHA-256 of its content
(`kdx.checkpoint_names`), so one rename publishes file and checksum together. On reading, the content must match the
name: of 300 single flipped bits, torch.load alone accepted 283 with wrong weights.

Two resume checkpoints are kept, and of each weights file that one of them lists a copy. So one damaged file, whichever
it is, costs one checkpoint at most. With P the bytes of the weights, a resume checkpoint has 3 P and a copy P, written
once a list changes. Weights within the checkpoints would be written again with each: k P more for the mean of k
validations, which is 10 or 20 in the papers' recipes.
"""

import contextlib
import errno
import hashlib
import io
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from lightning_fabric.plugins import CheckpointIO
from torch import Tensor

from kdx.checkpoint_names import CheckpointKind, CheckpointName, set_aside_name
from kdx.errors import StorageError
from kdx.files import is_unfinished, open_file, write_whole

KEPT = 2  # resume checkpoints; should the newest turn out bad, the one before serves
# Of a file that cannot be opened these say nothing: its mode forbids it, or this process has no more to spend.
_NOT_OF_THE_FILE = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


_Found = TypeVar("_Found", bytes, dict[str, Any])


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
        self._publish(path, content)
        return path

    def copy_weights(self, names: Iterable[str]) -> None:
        """Sees to it that of the weights files of these names there are two each, before a checkpoint lists them.

        Raises:
            StorageError: neither of the two is there and whole.
        """
        for name in names:
            if missing := [path for path in self._both(name) if not path.exists()]:
                content = self._first(name, self._content)
                for path in missing:
                    self._publish(path, content)

    def _publish(self, path: Path, content: bytes | memoryview) -> None:
        if path.is_dir():  # nothing of kdx, and in the way
            self.set_aside(path)
        write_whole(path, content)

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
        """Whether the weights file of this name or its copy is there and whole; what is there and is not goes aside."""
        if CheckpointName.parse(name) is None:
            return False
        whole = [path.exists() and self._content(path) is not None for path in self._both(name)]
        return any(whole)

    def weights(self, name: str) -> dict[str, Tensor]:
        """The weights in the file of this name, or in its copy.

        Raises:
            StorageError: neither of the two is there and whole.
        """
        return self._first(name, self.read)

    def _both(self, name: str) -> tuple[Path, Path]:
        return self.folder / name, self.folder / _copy_of(name)

    def _first(self, name: str, read: Callable[[Path], _Found | None]) -> _Found:
        for path in self._both(name):
            with contextlib.suppress(FileNotFoundError):
                if (found := read(path)) is not None:
                    return found
        raise _lost(self.folder / name)

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
            if path.name in kept:
                continue
            if path.is_dir():  # nothing of kdx
                self.set_aside(path)
            else:
                path.unlink(missing_ok=True)

    def keep_weights(self, kept: Collection[str] = ()) -> None:
        """Remove all weights files but those of these names and their copies."""
        self.keep(CheckpointKind.WEIGHTS, kept)
        self.keep(CheckpointKind.COPY, [_copy_of(name) for name in kept])

    def sweep(self) -> None:
        """Remove what killed writers left behind; the caller owns the run."""
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if is_unfinished(path.name) and not path.is_dir():
                path.unlink(missing_ok=True)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        """Lightning's way in; the path that it gives is not used."""
        kind = CheckpointKind.STEP
        self.write(kind, checkpoint["global_step"], checkpoint)
        self.keep(kind, [path.name for path in self.newest_first(kind)[:KEPT]])

    def load_checkpoint(self, path: Any, map_location: Any | None = None, weights_only: bool | None = None) -> Any:
        """Lightning's way out; `run.train` has verified the file before."""
        try:
            state = self.read(Path(path))
        except FileNotFoundError:
            state = None
        if state is None:
            raise _lost(Path(path))
        return state

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


def _copy_of(name: str) -> str:
    return name.replace(CheckpointKind.WEIGHTS, CheckpointKind.COPY, 1)


def _lost(path: Path) -> StorageError:
    return StorageError(
        "this checkpoint was damaged or removed while its run was at work",
        place=str(path),
        hint="look after the disk; kdx resume goes on from an older one",
    )

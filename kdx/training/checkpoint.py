"""Checkpoint files that are whole or not there.

A file is written under a temporary name, forced to disk, and renamed to a name that carries its kind, its step and the
SHA-256 of its content; then the folder is forced to disk too. One rename publishes file and checksum together. On
reading, the content must match the name: of 300 single flipped bits, torch.load alone accepted 283 with wrong weights.
"""

import contextlib
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import CheckpointIO
from torch import Tensor

from kdx.errors import StorageError

_NAME = re.compile(r"(?P<kind>step|weights|best|average)-(?P<step>\d{9})\.(?P<sha>[0-9a-f]{64})\.ckpt")
KEPT = 2  # resume checkpoints; should the newest turn out bad, the one before serves


class CheckpointFiles(CheckpointIO):
    """The checkpoints of one run, in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, kind: str, step: int, state: Mapping[str, Any]) -> Path:
        """Publish `state` as `kind`.

        `step` is to resume from, `weights` are those at a validation, which a `step` may list, and `best` or `average`
        those that a run ends with.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        content = buffer.getbuffer()
        path = self.folder / f"{kind}-{step:09d}.{hashlib.sha256(content).hexdigest()}.ckpt"
        temporary = self.folder / f".tmp-{os.getpid()}-{path.name}"
        try:
            with temporary.open("xb") as file:  # never through a link that somebody put there
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        force_names(self.folder)
        return path

    def read(self, path: Path) -> dict[str, Any] | None:
        """The state in a file; None, and the file set aside as `.corrupt`, when it does not match its name or form."""
        content = self._content(path)
        if content is None:
            return None
        try:
            # torch.save compresses nothing, so what is in the file is as long as the file; a bomb is not.
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                if sum(entry.file_size for entry in archive.infolist()) > len(content):
                    raise ValueError("more in it than it is long")
            return dict(torch.load(io.BytesIO(content), map_location="cpu", weights_only=True))
        except MemoryError:
            raise
        except Exception:  # of any kind: the file is whole, so another program or another torch wrote it
            self.set_aside(path)
            return None

    def is_whole(self, name: str) -> bool:
        """Whether the file is there and matches its name; else it is set aside."""
        path = self.folder / name
        return path.exists() and self._content(path) is not None

    def weights(self, name: str) -> dict[str, Tensor]:
        """The weights in the file of this name.

        Raises:
            StorageError: it is not there, or does not match its name.
        """
        return self._expect(self.folder / name)

    def _content(self, path: Path) -> bytes | None:
        match = _NAME.fullmatch(path.name)
        content = path.read_bytes()
        if match is None or hashlib.sha256(content).hexdigest() != match["sha"]:
            self.set_aside(path)
            return None
        return content

    def _expect(self, path: Path) -> dict[str, Any]:
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

    def set_aside(self, path: Path) -> None:
        """Keep the file for whoever wants to know, but never read it again."""
        path.rename(path.with_suffix(".corrupt"))

    def newest_first(self, kind: str) -> list[Path]:
        """The files of a kind, highest step first."""
        if not self.folder.is_dir():
            return []
        found = [(match, path) for path in self.folder.iterdir() if (match := _NAME.fullmatch(path.name))]
        steps = [(int(match["step"]), path) for match, path in found if match["kind"] == kind]
        return [path for _, path in sorted(steps, reverse=True)]

    def keep(self, kind: str, kept: Collection[str] = ()) -> None:
        """Remove all files of a kind but those of these names."""
        for path in self.newest_first(kind):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed writers left behind; the caller owns the run."""
        for path in self.folder.glob(".tmp-*") if self.folder.is_dir() else ():
            path.unlink(missing_ok=True)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        """Lightning's way in; the path that it gives is not used."""
        self.write("step", checkpoint["global_step"], checkpoint)
        self.keep("step", [path.name for path in self.newest_first("step")[:KEPT]])

    def load_checkpoint(self, path: Any, map_location: Any | None = None, weights_only: bool | None = None) -> Any:
        """Lightning's way out; `run.train` has verified the file before."""
        return self._expect(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        """Lightning's way to delete."""
        Path(path).unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Of what a checkpoint file holds, as its name tells."""
    match = _NAME.fullmatch(path.name)
    assert match is not None, path
    return match["sha"]


def force_names(folder: Path) -> None:
    """Force the names in a folder to disk; until then a cut of the power may take them, whatever they name."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

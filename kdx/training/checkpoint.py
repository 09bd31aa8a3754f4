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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import CheckpointIO

_NAME = re.compile(r"(?P<kind>step|best)-(?P<step>\d{9})\.(?P<sha>[0-9a-f]{64})\.ckpt")
KEPT = 2  # resume checkpoints; should the newest turn out bad, the one before serves


class CheckpointFiles(CheckpointIO):
    """The checkpoints of one run, in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, kind: str, step: int, state: Mapping[str, Any]) -> Path:
        """Publish `state` as `kind` (`step` to resume from, `best` for the best-validation weights)."""
        self.folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        content = buffer.getbuffer()
        path = self.folder / f"{kind}-{step:09d}.{hashlib.sha256(content).hexdigest()}.ckpt"
        temporary = self.folder / f".tmp-{os.getpid()}-{path.name}"
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        return path

    def read(self, path: Path) -> dict[str, Any] | None:
        """The state in a file; None, and the file set aside as `.corrupt`, when it does not match its name."""
        match = _NAME.fullmatch(path.name)
        content = path.read_bytes()
        if match is None or hashlib.sha256(content).hexdigest() != match["sha"]:
            path.rename(path.with_suffix(".corrupt"))
            return None
        state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        return state

    def newest_first(self, kind: str) -> list[Path]:
        """The files of a kind, highest step first."""
        if not self.folder.is_dir():
            return []
        found = [(match, path) for path in self.folder.iterdir() if (match := _NAME.fullmatch(path.name))]
        steps = [(int(match["step"]), path) for match, path in found if match["kind"] == kind]
        return [path for _, path in sorted(steps, reverse=True)]

    def keep(self, kind: str, newest: int) -> None:
        """Remove all but the newest files of a kind."""
        for path in self.newest_first(kind)[newest:]:
            path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what killed writers left behind; the caller owns the run."""
        for path in self.folder.glob(".tmp-*") if self.folder.is_dir() else ():
            path.unlink(missing_ok=True)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        """Lightning's way in; the path that it gives is not used."""
        self.write("step", checkpoint["global_step"], checkpoint)
        self.keep("step", KEPT)

    def load_checkpoint(self, path: Any, map_location: Any | None = None, weights_only: bool | None = None) -> Any:
        """Lightning's way out; `run.train` has verified the file before."""
        state = self.read(Path(path))
        if state is None:
            raise OSError(f"checkpoint {path} does not match its checksum")
        return state

    def remove_checkpoint(self, path: Any) -> None:
        """Lightning's way to delete."""
        Path(path).unlink(missing_ok=True)

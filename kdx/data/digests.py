"""SHA-256 of files, computed once: a stamp beside the files keeps the hashes while the files are unchanged.

A file counts as unchanged while its size, inode, and times of last write and last change are those in the stamp. So a
write, a replacement or a copy is noticed; decay of the disk is not, until the stamp is removed. Where the stamp cannot
be written, as in a read-only folder, every call reads all files.
"""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kdx.files import open_file, read_file

STAMP = ".digests.json"
LARGEST = 1_000_000
"""Largest size of a stamp in bytes."""
SETTLED = 0.1
"""Seconds after which another write certainly has another time, since file systems count in ticks of a few ms."""


def digests(folder: Path, names: Iterable[str]) -> dict[str, str | None]:
    """SHA-256 of these files of the folder; None for a missing file. Links are not followed.

    Raises:
        OSError: a file cannot be read, or is no regular file.
        ValueError: a name leads out of the folder.
    """
    stamped = _read(folder / STAMP)
    stamp = {}
    found: dict[str, str | None] = {}
    for name in names:
        if name in ("", ".", "..") or "/" in name:
            raise ValueError(f"{name!r} is no file of this folder")
        found[name] = None
        try:
            state = _state(folder / name)
        except FileNotFoundError:
            continue
        entry = stamped.get(name)
        if isinstance(entry, list) and entry[:-1] == state:
            found[name] = entry[-1]
            stamp[name] = entry
            continue
        with open_file(folder / name, follow=False) as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        _, _, *times = state
        if _state(folder / name) == state and time.time() - max(times) / 1e9 > SETTLED:
            stamp[name] = [*state, found[name]]
    if stamp != stamped:
        _write(folder / STAMP, stamp)
    return found


def _state(path: Path) -> list[int]:
    found = path.lstat()
    return [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        stamp = json.loads(read_file(path, LARGEST, follow=False))
        if isinstance(stamp, dict):
            return stamp
    return {}


def _write(path: Path, stamp: dict[str, Any]) -> None:
    """Writes the stamp atomically; a stamp that cannot be written is left out."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with suppress(OSError):
        try:
            beside.write_text(json.dumps(stamp), encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

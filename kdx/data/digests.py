"""SHA-256 of files, computed once: a stamp beside them remembers it for as long as they are left alone.

A file counts as left alone while its size, inode, and times of last write and last change are those of the stamp. So
whatever writes to it, cuts it, replaces it or copies it elsewhere is noticed; decay of the disk itself is not, until
the stamp is removed. Where the stamp cannot be written, as in a folder that may only be read, every call reads it all.
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
"""Bytes of a stamp."""
SETTLED = 0.1
"""Seconds after which another write is sure to leave another time: file systems count in ticks, of a few ms mostly."""


def digests(folder: Path, names: Iterable[str]) -> dict[str, str | None]:
    """SHA-256 of these files of the folder; None where there is no such file. No link is followed.

    Raises:
        OSError: one of them is there but cannot be read, or is no file.
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
        told = stamped.get(name)
        if isinstance(told, list) and told[:-1] == state:
            found[name] = told[-1]
            stamp[name] = told
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
    """All at once, so that nobody reads half of it; a stamp that cannot be written is done without."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with suppress(OSError):
        try:
            beside.write_text(json.dumps(stamp), encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

"""Caches folders of computed files under a hash of their inputs.

A folder is renamed when it is complete; two processes may compute the same one at once, and the second uses the folder
of the first. A folder also has `contents.json` with the SHA-256 and the size of each file. A folder in which a file is
missing or has another size, as after an interrupted copy, is computed again.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.data.storage import data_home, file_sha256, new_folder

_CONTENTS = "contents.json"

Make = Callable[[Path], Mapping[str, Any]]


@dataclass(frozen=True)
class Cached:
    """A folder of the cache."""

    folder: Path
    facts: Mapping[str, Any]
    """The facts that `make` returned."""
    fingerprint: str
    """SHA-256 over the files' names and contents."""


def cache_key(value: Any) -> str:
    """Return the cache key of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def cached(home: Path | None, key: str, make: Make) -> Cached:
    """Return the folder `<home>/cache/<key>`.

    Args:
        home: the data home; None for the user's.
        make: fills an empty folder and returns facts as JSON; it is called only if the folder is absent or incomplete.

    Raises:
        AccessError, StorageError: `home` cannot be written, or its disk is full.
    """
    folder = (home or data_home()) / "cache" / key
    contents = _contents(folder)
    if contents is None:
        shutil.rmtree(folder, ignore_errors=True)
        with new_folder(folder) as unfinished:
            contents = _filled(unfinished, make)
    listed = json.dumps({name: file["sha256"] for name, file in contents["files"].items()}, sort_keys=True)
    return Cached(folder, contents["facts"], hashlib.sha256(listed.encode()).hexdigest())


def _filled(folder: Path, make: Make) -> dict[str, Any]:
    facts = make(folder)
    files = {path.name: {"sha256": file_sha256(path), "size": path.stat().st_size} for path in sorted(folder.iterdir())}
    contents = {"facts": facts, "files": files}
    (folder / _CONTENTS).write_text(json.dumps(contents), encoding="utf-8")
    return contents


def _contents(folder: Path) -> dict[str, Any] | None:
    """Return the contents of a folder; None if it is incomplete."""
    try:
        contents: dict[str, Any] = json.loads((folder / _CONTENTS).read_bytes())
        complete = all((folder / name).stat().st_size == file["size"] for name, file in contents["files"].items())
    except (OSError, ValueError):
        return None
    return contents if complete else None

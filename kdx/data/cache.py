"""Caches folders of computed files under a hash of their inputs.

A folder takes its name when it is complete; two processes may compute the same one at once, and the second uses the
folder of the first. Beside the files lies `contents.json` with the SHA-256 and the size of each. A folder in which a
file is missing or has another size, as after a copy that was cut off, is computed anew.
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
    """The key of a JSON value in the cache."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def cached(home: Path | None, key: str, make: Make) -> Cached:
    """Return the folder `<home>/cache/<key>`.

    Args:
        home: the data home; None for that of the user.
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
    """The contents of a complete folder; None for any other."""
    try:
        contents: dict[str, Any] = json.loads((folder / _CONTENTS).read_bytes())
        complete = all((folder / name).stat().st_size == file["size"] for name, file in contents["files"].items())
    except (OSError, ValueError):
        return None
    return contents if complete else None

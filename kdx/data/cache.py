"""Folders of computed files, kept under a hash of what they were computed from, and never trusted unseen.

Beside the files lies `contents.json` with the SHA-256 of each; a folder that does not agree with it is made anew. Two
processes that make the same folder at once do no harm: the one that comes second uses what the first has made.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.data.digests import digests
from kdx.data.storage import new_folder, remove_folder

_CONTENTS = "contents.json"


@dataclass(frozen=True)
class Cached:
    """A folder of the cache."""

    folder: Path
    facts: Mapping[str, Any]
    """What was told when it was made."""
    fingerprint: str
    """SHA-256 over the files' names and contents."""


def cached(home: Path, key: str, make: Callable[[Path], Mapping[str, Any]]) -> Cached:
    """The folder `<home>/cache/<key>`.

    `make` fills the empty folder it is given and returns the facts, which JSON can hold; it is called only where the
    folder is absent or damaged.

    Raises:
        StorageError: the disk is full, or `home` cannot be written.
    """
    folder = home / "cache" / key
    contents = _contents(folder)
    if contents is None:
        remove_folder(folder)
        with new_folder(folder) as filling:
            facts = make(filling)
            files = digests(filling, sorted(path.name for path in filling.iterdir()))
            contents = {"facts": facts, "files": files}
            (filling / _CONTENTS).write_text(json.dumps(contents), encoding="utf-8")
    told = json.dumps(contents["files"], sort_keys=True)
    return Cached(folder, contents["facts"], hashlib.sha256(told.encode()).hexdigest())


def _contents(folder: Path) -> dict[str, Any] | None:
    """What lies in a folder that is whole."""
    try:
        contents = json.loads((folder / _CONTENTS).read_bytes())
        if digests(folder, contents["files"]) == contents["files"] and isinstance(contents["facts"], dict):
            return dict(contents)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None

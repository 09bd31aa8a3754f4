"""Folders of computed files, kept under a hash of what they were computed from, and never trusted unseen.

Beside the files lies `contents.json` with the SHA-256 of each; a folder that does not agree with it is made anew. Two
processes that make the same folder at once do no harm: the one that comes second uses what the first has made.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kdx.data.storage import new_folder, remove_folder

_CONTENTS = "contents.json"


def cached(home: Path, key: str, make: Callable[[Path], Mapping[str, Any]]) -> tuple[Path, Mapping[str, Any]]:
    """The folder `<home>/cache/<key>` and the facts told when it was made.

    `make` fills the empty folder it is given and returns those facts, which JSON can hold; it is called only where the
    folder is absent or damaged.

    Raises:
        StorageError: the disk is full, or `home` cannot be written.
    """
    folder = home / "cache" / key
    facts = _facts(folder)
    if facts is None:
        remove_folder(folder)
        with new_folder(folder) as filling:
            facts = make(filling)
            files = {path.name: _digest(path) for path in filling.iterdir()}
            (filling / _CONTENTS).write_text(json.dumps({"facts": facts, "files": files}), encoding="utf-8")
    return folder, facts


def _facts(folder: Path) -> Mapping[str, Any] | None:
    try:
        contents = json.loads((folder / _CONTENTS).read_bytes())
        if all(_digest(folder / name) == digest for name, digest in contents["files"].items()):
            return dict(contents["facts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

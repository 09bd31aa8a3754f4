"""Caches folders of computed files under a hash of their inputs, and checks them before each use.

Beside the files lies `contents.json` with the SHA-256 of each; a folder that does not match it is recomputed. Two
processes may compute the same folder at once: the second one uses the folder of the first.

kdx works without the cache: where it cannot be written, the folder is temporary and exists as long as it is read.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.data.digests import digests
from kdx.data.storage import new_folder, remove_folder
from kdx.errors import StorageError
from kdx.files import filling, read_file

_CONTENTS = "contents.json"
_LONGEST = 1_000_000  # bytes of that file

Make = Callable[[Path], Mapping[str, Any]]


@dataclass(frozen=True)
class Cached:
    """A folder of the cache."""

    folder: Path
    facts: Mapping[str, Any]
    """The facts that `make` returned."""
    fingerprint: str
    """SHA-256 over the files' names and contents."""
    uncached: str | None = None
    """Why the folder is not in the cache; None if it is."""


@contextmanager
def cached(home: Path, key: str, make: Make) -> Iterator[Cached]:
    """The folder `<home>/cache/<key>`, or, where that cannot be written, a temporary one that ends with the block.

    Arrays that were mapped from its files can still be read after the block.

    Args:
        make: fills an empty folder and returns facts as JSON; it is called only if the folder is absent or damaged.

    Raises:
        StorageError: neither `home` nor the folder of temporary files can be written, or their disks are full.
    """
    folder = home / "cache" / key
    uncached = None
    with ExitStack() as temporary:
        contents = _contents(folder)
        if contents is None:
            remove_folder(folder)
            try:
                with new_folder(folder) as unfinished:
                    contents = _made(unfinished, make)
            except StorageError as error:
                try:
                    folder = temporary.enter_context(filling(Path(tempfile.gettempdir()), folder=True))
                    folder.chmod(0o700)
                    contents = _made(folder, make)
                except OSError:
                    raise error from error.__cause__
                uncached = _reason(home, error)
        listed = json.dumps(contents["files"], sort_keys=True)
        yield Cached(folder, contents["facts"], hashlib.sha256(listed.encode()).hexdigest(), uncached)


def _made(folder: Path, make: Make) -> dict[str, Any]:
    facts = make(folder)
    files = digests(folder, sorted(path.name for path in folder.iterdir()))
    contents = {"facts": facts, "files": files}
    (folder / _CONTENTS).write_text(json.dumps(contents), encoding="utf-8")
    return contents


def _reason(home: Path, error: StorageError) -> str:
    why = getattr(error.__cause__, "strerror", None) or error.problem
    return (
        f"nothing can be kept in {home / 'cache'} ({why}), so that each run makes its data anew;"
        " set KDX_DATA to a folder elsewhere"
    )


def _contents(folder: Path) -> dict[str, Any] | None:
    """The contents of a complete folder; None for any other."""
    try:
        contents = json.loads(read_file(folder / _CONTENTS, _LONGEST, follow=False))
        if digests(folder, contents["files"]) == contents["files"] and isinstance(contents["facts"], dict):
            return dict(contents)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return None

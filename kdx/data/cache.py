"""Folders of computed files, kept under a hash of what they were computed from, and never trusted unseen.

Beside the files lies `contents.json` with the SHA-256 of each; a folder that does not agree with it is made anew. Two
processes that make the same folder at once do no harm: the one that comes second uses what the first has made.

The cache is a help, not a need: where it cannot be written, the folder is made elsewhere and kept for as long as it is
read.
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
_LONGEST = 1_000_000  # bytes of it

Make = Callable[[Path], Mapping[str, Any]]


@dataclass(frozen=True)
class Cached:
    """A folder of the cache."""

    folder: Path
    facts: Mapping[str, Any]
    """What was told when it was made."""
    fingerprint: str
    """SHA-256 over the files' names and contents."""
    uncached: str | None = None
    """Why the folder is not kept; None where it is."""


@contextmanager
def cached(home: Path, key: str, make: Make) -> Iterator[Cached]:
    """The folder `<home>/cache/<key>`, or, where that cannot be written, a temporary one that goes with the block.

    What was mapped from its files can still be read after the block.

    Args:
        make: fills the empty folder it is given and returns the facts, which JSON can hold; it is called only where the
            folder is absent or damaged.

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
        told = json.dumps(contents["files"], sort_keys=True)
        yield Cached(folder, contents["facts"], hashlib.sha256(told.encode()).hexdigest(), uncached)


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
    """What lies in a folder that is whole."""
    try:
        contents = json.loads(read_file(folder / _CONTENTS, _LONGEST, follow=False))
        if digests(folder, contents["files"]) == contents["files"] and isinstance(contents["facts"], dict):
            return dict(contents)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return None

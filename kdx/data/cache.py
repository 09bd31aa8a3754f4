"""Caches folders of computed files under a hash of their inputs, and checks them before each use.

Beside the files lies `contents.json` with the SHA-256, the size and the time of last write of each; a folder that does
not match it is recomputed. A file of the same size and time is not read again, so decay of the disk is not noticed. Two
processes may compute the same folder at once: the second one uses the folder of the first.

kdx works without the cache: where it cannot be written, the folder is temporary and exists as long as it is read.
"""

import hashlib
import json
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdx.data.storage import file_sha256, new_folder, remove_folder
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
    notes: tuple[str, ...] = ()
    """Why the folder is not in the cache; none if it is."""


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
    notes: tuple[str, ...] = ()
    with ExitStack() as temporary:
        contents = _contents(folder)
        if contents is None:
            remove_folder(folder)
            try:
                with new_folder(folder) as unfinished:
                    contents = _filled(unfinished, make)
            except StorageError as error:
                try:
                    folder = temporary.enter_context(filling(Path(tempfile.gettempdir()), folder=True))
                    folder.chmod(0o700)
                    contents = _filled(folder, make)
                except OSError:
                    raise error from error.__cause__
                notes = (_reason(home, error),)
        listed = json.dumps({name: file["sha256"] for name, file in contents["files"].items()}, sort_keys=True)
        yield Cached(folder, contents["facts"], hashlib.sha256(listed.encode()).hexdigest(), notes)


def _filled(folder: Path, make: Make) -> dict[str, Any]:
    facts = make(folder)
    files = {path.name: {"sha256": file_sha256(path), **_state(path)} for path in sorted(folder.iterdir())}
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
        whole = all(_is_unchanged(folder / name, file) for name, file in contents["files"].items())
        if whole and isinstance(contents["facts"], dict):
            return dict(contents)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return None


def _state(path: Path) -> dict[str, int]:
    state = path.lstat()
    return {"size": state.st_size, "modified": state.st_mtime_ns}


def _is_unchanged(path: Path, recorded: Mapping[str, Any]) -> bool:
    """Whether a file is as recorded; one with another time, as of a copied folder, is read and hashed."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return False
    state = _state(path)
    return state.items() <= recorded.items() or (
        state["size"] == recorded["size"] and file_sha256(path) == recorded["sha256"]
    )

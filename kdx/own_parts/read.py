"""Finds parts of one's own and reads their sources; nothing of them is run."""

import ast
import functools
import os
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kdx.errors import KdxError, Place
from kdx.files import TooLargeError, read_file
from kdx.own_parts.part import LARGEST, MOST_MODULES, STEP, OwnPart, absolute, module_of, parsed
from kdx.own_parts.registry import FAMILY_OF

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "kernel": "kdx.kernels",
    "position": "kdx.positions",
    "filter": "kdx.filters",
    "normaliser": "kdx.normalisers",
    "value": "kdx.values",
    "encoding": "kdx.encodings",
    "mixer": "kdx.mixers",
    "task": "kdx.tasks",
    "corpus": "kdx.corpora",
}
"""Axis → the group of entry points by which a package brings words for it."""
_DEEPEST = 100
"""Packages around a module; no file of a part lies deeper."""
_IN_FILE = re.compile(rf"((?:{STEP.pattern}/)*){STEP.pattern}(?<=\.py):[A-Za-z_]\w*", re.ASCII)


def is_in_file(word: str) -> bool:
    """Whether a word is meant to name a class in a file, `FILE.py:Class`."""
    return ".py:" in word


def is_of_kdx(module: str) -> bool:
    """Whether kdx itself has such a name, whatever a folder is called; it is never a part."""
    return module.partition(".")[0] == "kdx"


def folder_in(word: str) -> str | None:
    """The folder that a word names its file in, with a slash at its end; empty for none; None: it is no word."""
    if not is_in_file(word):
        return ""
    found = _IN_FILE.fullmatch(word)
    return found[1] if found else None


def find(axis: str, word: str, folder: Path) -> OwnPart | None:
    """The part that a word names: a class in a file below `folder`, or what a package brings under this name.

    Args:
        axis: as a grid names it; `corpus` of `data.corpus`.

    Returns:
        None where no installed package has such a word.

    Raises:
        KdxError: there is no such file, class or package, its source cannot be read, or it is of another kind.
    """
    return _of_file(axis, word, folder) if is_in_file(word) else _of_package(axis, word)


def installed() -> Iterator[tuple[str, str]]:
    """(axis, word) of every word that an installed package brings."""
    for axis, group in GROUPS.items():
        for word in sorted(_entries(group, tuple(sys.path))):
            yield axis, word


@functools.cache
def _entries(group: str, path: tuple[str, ...]) -> "dict[str, EntryPoint]":
    """Word → what brings it, of packages on this path; once a process, for it reads a file of every package there."""
    from importlib.metadata import entry_points  # late: it takes as long to import as a small grid takes to plan

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, entry)
    return found


def find_any(word: str, folder: Path) -> OwnPart:
    """The part that a word names, of whatever axis its class is; raises what `find` does."""
    found = [part for axis in FAMILY_OF if (part := find(axis, word, folder)) is not None]
    if not found:
        raise KdxError(f"no installed package brings `{word}`", allowed="FILE.py:Class, or a word of a package")
    return next((part for part in found if FAMILY_OF[part.axis].fits(part)), found[0])


def _of_file(axis: str, word: str, folder: Path) -> OwnPart:
    if folder_in(word) is None:
        allowed = "FILE.py:Class, with a file at or below the folder of the grid"
        raise KdxError(f"`{word}` names no part", allowed=allowed)
    path, _, name = word.rpartition(":")
    file = folder / path
    if is_of_kdx(module_of(file.name)):
        raise KdxError(f"`{path}` has the name of a module of kdx", hint="rename the file")
    sources = _sources(file.parent, file.name, path.rpartition("/")[0], inside=folder)
    return OwnPart(axis, word, module_of(file.name), name, sources)


def _of_package(axis: str, word: str) -> OwnPart | None:
    entry = _entries(GROUPS[axis], tuple(sys.path)).get(word)
    if entry is None:
        return None
    top = entry.module.partition(".")[0]
    spec = find_spec(top)  # of a module that lies in nothing: its file is found, and nothing is run
    places = list(spec.submodule_search_locations or ()) if spec else []
    origin = Path(places[0]) if places else Path(spec.origin) if spec and spec.origin else None
    if origin is None:
        raise KdxError(
            f"the package of {axis} `{word}` is gone: no module `{top}`", hint=f"install it again: {_of(entry)}"
        )
    root = origin.parent
    path = _file_of(root, entry.module)
    if path is None:
        raise KdxError(f"{_of(entry)} names no module for {axis} `{word}`: `{entry.module}`", place=str(root))
    return OwnPart(axis, word, entry.module, entry.attr, _sources(root, path, within=top), package=_of(entry))


def _of(entry: "EntryPoint") -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _sources(
    root: Path, first: str, folder: str = "", within: str | None = None, inside: Path | None = None
) -> dict[str, str]:
    """Path → text of a module and of those below `root` that it imports, at whatever depth.

    Args:
        folder: where `root` lies, for messages.
        within: only modules of this package; None: all that lie there.
        inside: a folder that no link may lead out of; None: links lead wherever they do.
    """
    found: dict[str, str] = {}
    room = LARGEST
    left = [first]
    while left:
        path = left.pop()
        if path in found:
            continue
        place = "/".join(filter(None, (folder, path)))
        if len(found) == MOST_MODULES:
            raise KdxError(f"more than {MOST_MODULES} modules", place=place, hint="import less, or install a package")
        if inside is not None and not Path(os.path.realpath(root / path)).is_relative_to(os.path.realpath(inside)):
            raise KdxError(f"`{place}` leads out of the folder of the grid", allowed="a file at or below it")
        if not all(map(STEP.fullmatch, path.split("/"))):
            raise KdxError(f"`{place}` is no name of a module of a part", allowed="up to 100 of A-Z a-z 0-9 _ . -")
        try:
            raw = read_file(root / path, room)
            room -= len(raw)
            text = raw.decode("utf-8-sig")
            tree = absolute(parsed(text, place), path)
        except TooLargeError as error:
            before = f" after {LARGEST - room:,} of other modules" if found else ""
            allowed = f"at most {LARGEST:,}, of all modules together"
            raise KdxError(f"{error.size:,} bytes{before}", place=place, allowed=allowed) from error
        except OSError as error:
            raise KdxError(f"cannot read the file: {error.strerror}", place=place) from error
        except UnicodeDecodeError as error:
            raise KdxError("not UTF-8", place=place, hint="save the file as UTF-8") from error
        except SyntaxError as error:
            at = Place(place, error.lineno or 1, error.offset or 1)
            raise KdxError(f"no Python: {error.msg}", place=at) from error
        found[path] = text
        module = module_of(path)
        wanted = dict.fromkeys([*_imports(tree), *_above(module)])
        names = (name for name in wanted if within in (None, name.partition(".")[0]))
        left += [inner for name in names if (inner := _file_of(root, name)) is not None]
    return found


def _imports(tree: ast.Module) -> Iterator[str]:
    """Every module that may be meant by an import, and the packages around it."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.count(".") < _DEEPEST:
                yield name
                yield from _above(name)


def _above(module: str) -> Iterator[str]:
    steps = module.split(".")
    return (".".join(steps[:count]) for count in range(1, len(steps)))


def _file_of(root: Path, module: str) -> str | None:
    """The file of a module below `root`; None: it is not there, so it is somebody else's."""
    path = module.replace(".", "/")
    files = (f"{path}.py", f"{path}/__init__.py")
    return next((file for file in files if not is_of_kdx(module) and _is_file(root / file)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False

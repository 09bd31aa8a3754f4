"""Finds custom components and reads their sources; nothing of them is run."""

import ast
import functools
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kdx.components.component import LARGEST, Component
from kdx.components.registry import FAMILY_OF
from kdx.components.source import module_of, tree_of
from kdx.errors import KdxError, Place
from kdx.files import TooLargeError, read_file

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {axis: f"kdx.{axis if axis.endswith('s') else f'{axis}s'}" for axis in FAMILY_OF} | {"corpus": "kdx.corpora"}
"""Axis → the group of entry points by which a package brings components, such as `kdx.kernels`."""
_STEP = r"\w[\w.-]{0,99}"
"""A folder or file of a path: nothing that leads elsewhere, or that a shell or a terminal takes for something else."""
IN_FILE = re.compile(rf"((?:{_STEP}/)*)({_STEP})(?<=\.py):[A-Za-z_]\w*", re.ASCII)
"""A word of a file: its folder, with a slash at its end, and its name."""
SOURCE = re.compile(rf"(?:{_STEP}/)*{_STEP}(?<=\.py)", re.ASCII)
"""The path of a module."""


def is_in_file(word: str) -> bool:
    """Whether a word is meant to name a class in a file, `FILE.py:Class`."""
    return ".py:" in word


def find(axis: str, word: str, folder: Path) -> Component | None:
    """The component that a word names: a class in a file below `folder`, or what a package brings under this name.

    Args:
        axis: as a grid names it; `corpus` of `data.corpus`.

    Returns:
        None if no installed package has such a word.

    Raises:
        KdxError: there is no such file, class or package, or its source cannot be read.
    """
    return _in_file(axis, word, folder) if is_in_file(word) else _in_package(axis, word)


def find_any(word: str, folder: Path) -> Component:
    """The component that a word names, of whatever axis its class is; raises what `find` does."""
    found = [one for axis in FAMILY_OF if (one := find(axis, word, folder)) is not None]
    if not found:
        raise KdxError(f"no installed package brings `{word}`", allowed="FILE.py:Class, or a name of a package")
    return next((one for one in found if FAMILY_OF[one.axis].fits(one)), found[0])


def installed() -> Iterator[tuple[str, str]]:
    """(axis, word) of every component of an installed package."""
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


def _in_file(axis: str, word: str, folder: Path) -> Component:
    if not IN_FILE.fullmatch(word):
        allowed = "FILE.py:Class, with a file at or below the folder of the grid"
        raise KdxError(f"`{word}` names no component", allowed=allowed)
    path, _, name = word.rpartition(":")
    file = folder / path
    if _is_of_kdx(module_of(file.name)):
        raise KdxError(f"`{path}` has the name of a module of kdx", hint="rename the file")
    sources = _sources(file.parent, file.name, path.rpartition("/")[0])
    return Component(axis, word, name, file.name, sources, folder=str(file.parent))


def _in_package(axis: str, word: str) -> Component | None:
    entry = _entries(GROUPS[axis], tuple(sys.path)).get(word)
    if entry is None:
        return None
    distribution = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    top = entry.module.partition(".")[0]
    spec = find_spec(top)  # of a module that lies in nothing: its file is found, and nothing is run
    places = list(spec.submodule_search_locations or ()) if spec else []
    origin = Path(places[0]) if places else Path(spec.origin) if spec and spec.origin else None
    if origin is None:
        hint = f"install it again: {distribution}"
        raise KdxError(f"the package of {axis} `{word}` is gone: no module `{top}`", hint=hint)
    root = origin.parent
    path = _file_of(root, entry.module)
    if path is None:
        raise KdxError(f"{distribution} names no module for {axis} `{word}`: `{entry.module}`", place=str(root))
    sources = _sources(root, path, within=top)
    return Component(axis, word, entry.attr, path, sources, package=distribution, folder=str(root))


def _sources(root: Path, first: str, folder: str = "", within: str | None = None) -> dict[str, str]:
    """Path → text of a module and of those below `root` that it imports, at whatever depth.

    Args:
        folder: where `root` lies, for messages.
        within: only modules of this package; None: all that lie there.
    """
    found: dict[str, str] = {}
    room = LARGEST
    left = [first]
    while left:
        path = left.pop()
        if path in found:
            continue
        place = "/".join(filter(None, (folder, path)))
        if not SOURCE.fullmatch(path):
            raise KdxError(f"`{place}` is no name of a module of a component", allowed="up to 100 of A-Z a-z 0-9 _ . -")
        try:
            raw = read_file(root / path, room)
            room -= len(raw)
            text = raw.decode("utf-8-sig")
            tree = tree_of(text, path)
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
        names = dict.fromkeys([*_imports(tree), *_with_packages(module_of(path))])
        inner = (name for name in names if within in (None, name.partition(".")[0]))
        left += [file for name in inner if (file := _file_of(root, name)) is not None]
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
            yield from _with_packages(name)


def _with_packages(module: str) -> Iterator[str]:
    steps = module.split(".")[:100]  # longer than any path
    return (".".join(steps[:count]) for count in range(1, len(steps) + 1))


def _file_of(root: Path, module: str) -> str | None:
    """The file of a module below `root`; None if there is none, so that it is somebody else's."""
    path = module.replace(".", "/")
    files = (f"{path}.py", f"{path}/__init__.py")
    return next((file for file in files if not _is_of_kdx(module) and _is_file(root / file)), None)


def _is_of_kdx(module: str) -> bool:
    return module.partition(".")[0] == "kdx"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False

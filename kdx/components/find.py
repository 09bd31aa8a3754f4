"""Finds custom components and reads their sources, without running them.

A grid names them. A recorded cell has only the hash of a source, not its place: the files are searched in the current
folder or in the one that the user names.
"""

import ast
import functools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kdx.components.registry import FAMILY_OF, add
from kdx.errors import KdxError, Place
from kdx.files import TooLargeError, read_file
from kdx.words.component import Component, module_of, tree_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {axis: f"kdx.{axis if axis.endswith('s') else f'{axis}s'}" for axis in FAMILY_OF} | {"corpus": "kdx.corpora"}
"""Axis → the group of entry points by which a package provides components, such as `kdx.kernels`."""
_STEP = r"\w[\w.-]{0,99}"
"""A folder or file of a path; excludes `..` and characters that a shell or a terminal would interpret."""
IN_FILE = re.compile(rf"((?:{_STEP}/)*)({_STEP})(?<=\.py):[A-Za-z_]\w*", re.ASCII)
"""A name of the form `FILE.py:Class`; the groups are the folder, with a slash at its end, and the name of the file."""
_SOURCE = re.compile(rf"(?:{_STEP}/)*{_STEP}(?<=\.py)", re.ASCII)
"""Path of a module."""
LARGEST = 1_000_000
"""The most bytes of a module; a database keeps them as JSON, where a byte may take twelve."""


def is_in_file(word: str) -> bool:
    """Return whether a name is meant as a class in a file, `FILE.py:Class`."""
    return ".py:" in word


def find(axis: str, word: str, folder: Path) -> Component | None:
    """Return the component of this name: a class in a file below `folder`, or one that an installed package provides.

    Args:
        axis: the axis as a grid names it; `corpus` for `data.corpus`.

    Returns:
        None if no installed package has such a name.

    Raises:
        KdxError: the file, class or package does not exist, or its source cannot be read.
    """
    return _in_file(axis, word, folder) if is_in_file(word) else _in_package(axis, word)


def find_any(word: str, folder: Path) -> Component:
    """Return the component of this name on any axis; raises what `find` does."""
    components = [component for axis in FAMILY_OF if (component := find(axis, word, folder)) is not None]
    if not components:
        problem, hint = f"no installed package provides `{word}`", None
        if word.endswith(".py"):
            problem, hint = f"`{word}` names a file, not a class in it", f"{word}:Class"
        raise KdxError(problem, allowed="FILE.py:Class, or a name of a package", hint=hint)
    fitting = [component for component in components if FAMILY_OF[component.axis].fits(component)]
    if not fitting and len(components) > 1:
        bases = sorted({FAMILY_OF[component.axis].base for component in components})
        hint = "import the base class by its name: from kdx.attention.interfaces import KernelFunction"
        raise KdxError(f"`{word}` has no base class of kdx that can be read", allowed=bases, hint=hint)
    return (fitting or components)[0]


def installed() -> Iterator[tuple[str, str]]:
    """Yield (axis, name) of every component of an installed package."""
    for axis, group in GROUPS.items():
        for word in sorted(_entries(group, tuple(sys.path))):
            yield axis, word


def folders_of(grid: str, components: Path | None = None) -> tuple[Path, ...]:
    """Return the folders in which the files of a recorded sweep's components are searched.

    Args:
        grid: path of the grid, as recorded in the database. The database may be from somebody else, so the folder of
            the grid is used only if it is below the current one.
        components: folder that the user named; then it is the only one.
    """
    if components is not None:
        return (components,)
    here, beside = Path.cwd(), Path(grid).parent
    return (beside, here) if grid and beside.resolve().is_relative_to(here.resolve()) else (here,)


def bring(missing: Mapping[tuple[str, str], str], folders: Iterable[Path], place: str) -> None:
    """Add the components of recorded cells to the names that this process knows.

    Args:
        missing: (axis, name) → the hash of its source.
        folders: folders to search for files, see `folders_of`.
        place: place of messages.

    Raises:
        KdxError: a component is missing, or has another source.
    """
    folders = tuple(folders)
    for (axis, word), sha256 in missing.items():
        candidates = list(_candidates(axis, word, folders))
        same = next((component for component in candidates if component.sha256 == sha256), None)
        if same is not None:
            add(same)
        elif candidates:
            raise KdxError(
                f"the source of `{word}` is not the one that its cells were made with",
                place=str(Path(candidates[0].folder, candidates[0].path)),
                hint="kdx export --components --to FOLDER writes that one out;"
                " with the new source, kdx sweep GRID makes new cells",
            )
        elif is_in_file(word):
            where = " and ".join(map(str, dict.fromkeys(folders)))
            raise KdxError(
                f"its cells use `{word}`, which is not in {where}",
                place=place,
                hint="name the folder where the file lies: --components FOLDER, or components='FOLDER' in Python;"
                " kdx export --components --to FOLDER writes out the source that was recorded, to be read first",
            )
        else:
            raise KdxError(
                f"its cells use {axis} `{word}`, which no installed package provides",
                place=place,
                hint="install the package; kdx export --components --to FOLDER writes out the source that was recorded",
            )


def is_found(word: str, sha256: str, folders: Iterable[Path]) -> bool:
    """Return whether these folders have a class in a file, with this source."""
    return any(component.sha256 == sha256 for component in _candidates("", word, folders))


def laid_out(components: Iterable[Component]) -> dict[str, str]:
    """Return path below a folder → text, so that `--components FOLDER` finds recorded components there.

    Raises:
        KdxError: a path leads out of the folder, as after an edit of the database.
    """
    files: dict[str, str] = {}
    for component in components:
        match = IN_FILE.fullmatch(component.word)
        if not all(map(_SOURCE.fullmatch, component.sources)) or (is_in_file(component.word) and not match):
            raise KdxError(f"what was recorded of `{component.word}` is not the source that its cells were made with")
        folder, file = match.groups() if match else ("", component.path)
        for path, text in component.sources.items():
            files[f"{folder}{file if path == component.path else path}"] = text
    return files


def _candidates(axis: str, word: str, folders: Iterable[Path]) -> Iterator[Component]:
    """Yield the components of this name: in the file that it names, or next to the grid if the file was moved there."""
    if not is_in_file(word):
        if (component := _in_package(axis, word)) is not None:
            yield component
        return
    if not IN_FILE.fullmatch(word):
        raise KdxError(f"`{word}` names no component", allowed="FILE.py:Class")
    path, _, name = word.rpartition(":")
    for folder in folders:
        for file in dict.fromkeys((folder / path, folder / Path(path).name)):
            if file.is_file():
                yield replace(_in_file(axis, f"{file.name}:{name}", file.parent), word=word)


def _in_file(axis: str, word: str, folder: Path) -> Component:
    if not IN_FILE.fullmatch(word):
        allowed = "FILE.py:Class, with a file at or below the folder of the grid"
        hint = "name the file relative to the folder of the grid" if word.startswith(("/", ".", "~")) else None
        raise KdxError(f"`{word}` names no component", allowed=allowed, hint=hint)
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
    spec = find_spec(top)  # for a top-level module this finds the file and runs nothing
    folders = list(spec.submodule_search_locations or ()) if spec else []
    origin = Path(folders[0]) if folders else Path(spec.origin) if spec and spec.origin else None
    path = None if origin is None else _file_of(origin.parent, entry.module)
    if origin is None or path is None:
        problem = f"{distribution} lacks the module `{entry.module}`, which it names for {axis} `{word}`"
        raise KdxError(problem, hint=f"install it again: {distribution}")
    sources = _sources(origin.parent, path, within=top)
    return Component(axis, word, entry.attr, path, sources, package=distribution, folder=str(origin.parent))


@functools.cache
def _entries(group: str, path: tuple[str, ...]) -> "dict[str, EntryPoint]":
    """Return name → entry point of packages on this path; cached, since it reads a file of every package there."""
    from importlib.metadata import entry_points  # late: importing it takes as long as planning a small grid

    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        entries.setdefault(entry.name, entry)
    return entries


def _sources(root: Path, first: str, folder: str = "", within: str | None = None) -> dict[str, str]:
    """Return path → text of a module and of those below `root` that it imports, at whatever depth.

    Args:
        folder: path of `root`, for messages.
        within: package to which modules are limited; None for all below `root`.
    """
    texts: dict[str, str] = {}
    left = [first]
    while left:
        path = left.pop()
        if path in texts:
            continue
        place = "/".join(filter(None, (folder, path)))
        if not _SOURCE.fullmatch(path):
            raise KdxError(f"`{place}` is no name of a module of a component", allowed="up to 100 of A-Z a-z 0-9 _ . -")
        try:
            texts[path] = read_file(root / path, LARGEST).decode("utf-8-sig")
            tree = tree_of(texts[path], path)
        except OSError as error:
            allowed = f"at most {LARGEST:,} bytes" if isinstance(error, TooLargeError) else None
            raise KdxError(f"cannot read the file: {error.strerror}", place=place, allowed=allowed) from error
        except UnicodeDecodeError as error:
            raise KdxError("not UTF-8", place=place, hint="save the file as UTF-8") from error
        except SyntaxError as error:
            at = Place(place, error.lineno or 1, error.offset or 1)
            raise KdxError(f"no Python: {error.msg}", place=at) from error
        names = dict.fromkeys([*_imports(tree), *_with_packages(module_of(path))])
        inner = (name for name in names if within in (None, name.partition(".")[0]))
        left += [file for name in inner if (file := _file_of(root, name)) is not None]
    return texts


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield every module that an import may mean, and the packages around it."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # `from . import helper` beside a file names no package.
            package = [node.module] if node.module else []
            names = [*package, *(".".join((*package, alias.name)) for alias in node.names)]
        for name in names:
            yield from _with_packages(name)


def _with_packages(module: str) -> Iterator[str]:
    steps = module.split(".")
    return (".".join(steps[:count]) for count in range(1, len(steps) + 1))


def _file_of(root: Path, module: str) -> str | None:
    """Return the file of a module below `root`; None if the module is not there, but in another package."""
    path = module.replace(".", "/")
    files = (f"{path}.py", f"{path}/__init__.py")
    return next((file for file in files if not _is_of_kdx(module) and (root / file).is_file()), None)


def _is_of_kdx(module: str) -> bool:
    return module.partition(".")[0] == "kdx"

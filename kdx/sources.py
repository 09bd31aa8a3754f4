"""The sources of kdx's own modules, and what was read from them before.

Definitions and fingerprints are read from syntax trees, which takes a hundred times as long as to hash the files. So
what a reader finds in a source is kept in one file of the user's cache folder, under a hash of that source and of the
reader's own. So it can be missing there, but never out of date.
"""

import ast
import atexit
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from kdx.files import read_file, write_whole
from kdx.version import VERSION

LARGEST = 1 << 24
"""Bytes of what is kept; a larger file is none of kdx."""


@cache
def _package() -> Traversable:
    return files("kdx")


@cache
def source_of(module: str) -> Traversable | None:
    """The file of a module, found without importing what it lies in; None: there is none."""
    steps = module.split(".")[1:]
    for file in (_package().joinpath(*steps[:-1], f"{steps[-1]}.py"), _package().joinpath(*steps, "__init__.py")):
        if file.is_file():
            return file
    return None


def read_source(module: str, reader: str, read: Callable[[ast.Module], Any]) -> Any:
    """What a reader finds in the source of a module: computed, or as it was kept.

    Args:
        module: a module of kdx that is there.
        reader: the module of `read`; on its source and on this one alone it depends what `read` finds.
        read: finds plain values that JSON can hold: texts, numbers, lists, and objects with texts as keys.
    """
    name = f"{reader} {module}"
    key = hashlib.sha256(b"\0".join(map(_content, (__name__, reader, module)))).hexdigest()
    kept = _readings().get(name)
    if kept is None or kept[0] != key:
        kept = _readings()[name] = (key, read(_tree(module)))
        _keep_at_exit()
    return kept[1]


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Every statement that runs, at whatever depth."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, block, ()):
            if isinstance(inner, ast.If) and isinstance(inner.test, ast.Name) and inner.test.id == "TYPE_CHECKING":
                yield from statements(ast.Module(inner.orelse, []))
                continue
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements(inner)


@cache
def _keep_at_exit() -> None:
    atexit.register(keep_readings)


def keep_readings() -> None:
    """Writes down what this process has read; where nothing can be written, the next process reads it again."""
    content = json.dumps(_readings()).encode()
    with suppress(OSError):
        if place := _place():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


@cache
def _readings() -> dict[str, tuple[str, Any]]:
    """Reader and module → the hash of both sources, and what was read: at first what another process wrote down.

    It is nothing where the file is not as that process wrote it.
    """
    place = _place()
    try:
        digest, _, content = read_file(place, LARGEST).partition(b"\n") if place else (b"", b"", b"")
    except (OSError, ValueError):
        return {}
    if hashlib.sha256(content).hexdigest().encode() != digest:
        return {}
    return {name: (key, found) for name, (key, found) in json.loads(content).items()}


def _place() -> Path | None:
    """The file of this kdx and this Python in the user's cache folder; None for a user without a home."""
    from platformdirs import user_cache_path  # late, since the help needs none

    try:
        # Without a home platformdirs would name a folder `~` in the current one.
        if not Path.home().is_dir():
            return None
    except RuntimeError:
        return None
    return user_cache_path("kdx") / f"sources-{VERSION}-{sys.implementation.cache_tag}.json"


@cache
def _content(module: str) -> bytes:
    source = source_of(module)
    assert source is not None, module
    return source.read_bytes()


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_content(module))

"""A part of one's own: its source as text."""

import ast
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kdx.errors import Place
from kdx.fingerprint import imports_of, tree_text
from kdx.own_parts.importer import Importer

MOST_MODULES = 100
LARGEST = 1_000_000
"""Characters of all modules; a database keeps them as JSON, in which one may take twelve."""
STEP = re.compile(r"\w[\w.-]{0,99}", re.ASCII)
"""A folder or file of a path: nothing that leads elsewhere, or that a shell or a terminal takes for something else."""


@dataclass(frozen=True)
class OwnPart:
    """A class with its source, and the sources of the modules beside it that it imports.

    Raises:
        ValueError: a path, a source or a name is of a kind that no part has.
    """

    axis: str
    """As a grid names it: `kernel`, `position`, …"""
    word: str
    """As a cell has it: `my_kernels.py:Cauchy`, or the word of a package."""
    module: str
    """Where the class stands, such as `my_kernels`."""
    name: str
    """Of the class."""
    sources: Mapping[str, str]
    """Path → text of each module; paths are relative to the folder of a file, or to that of a package's packages."""
    package: str = ""
    """Name and version of the package that brings it; empty for a file."""

    def __post_init__(self) -> None:
        if not are_sources(self.sources) or self.module not in self.paths or not self.name.isidentifier():
            raise ValueError(f"`{self.word}` has no source, or one that is too large, or at a path that no module has")

    @classmethod
    def read(cls, text: str) -> "OwnPart":
        """Of what `text` gives.

        Raises:
            ValueError: it is no part.
        """
        try:
            plain = json.loads(text)
            words = {name: plain[name] for name in ("axis", "word", "module", "name", "package")}
            sources = plain["sources"]
            if not all(isinstance(one, str) for one in (*words.values(), *sources, *sources.values())):
                raise ValueError("not text")
            return cls(**words, sources=sources)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError("no part") from error

    @property
    def text(self) -> str:
        """All of it as JSON, for another process or a database."""
        names = ("axis", "word", "module", "name", "package")
        return json.dumps({**{name: getattr(self, name) for name in names}, "sources": dict(self.sources)})

    @cached_property
    def paths(self) -> Mapping[str, str]:
        """Module → path."""
        return {module_of(path): path for path in self.sources}

    @cached_property
    def trees(self) -> Mapping[str, ast.Module]:
        """Module → syntax tree, whose imports are absolute.

        Raises:
            SyntaxError: a source is no Python.
        """
        return {module: absolute(parsed(self.sources[path], path), path) for module, path in self.paths.items()}

    @cached_property
    def sha256(self) -> str:
        """Of all syntax trees; comments, docstrings and layout do not count."""
        return _hash(self.sources)

    @cached_property
    def kdx_modules(self) -> tuple[str, ...]:
        """The modules of kdx that it imports."""
        return tuple(dict.fromkeys(module for tree in self.trees.values() for module in imports_of(tree)))

    def tree(self, module: str) -> ast.Module | None:
        """See `kdx.words.family.PartFromOutside`."""
        return self.trees.get(module)

    def file(self, module: str) -> str:
        """The path of a module as messages show it: relative to the folder of the grid, or inside the package."""
        folder = "" if self.package else self.word.rpartition(":")[0].rpartition("/")[0]
        return "/".join(filter(None, (folder, self.paths[module])))

    def place(self, module: str, line: int) -> Place:
        """A line of a module, for messages."""
        return Place(self.file(module), line, 1)

    @property
    def class_place(self) -> Place:
        """The line where its class begins; the first of its module where there is none."""
        named = (node for node in self.trees[self.module].body if isinstance(node, ast.ClassDef))
        return self.place(self.module, next((node.lineno for node in named if node.name == self.name), 1))

    def load(self) -> Any:
        """Runs the source, once in a process, and gives the class.

        Raises:
            AttributeError: there is no such class after all.
            Exception: whatever the source raises.
        """
        files = {module: (self.file(module), self.sources[path]) for module, path in self.paths.items()}
        packages = {module for module, path in self.paths.items() if path.endswith("__init__.py")}
        return getattr(Importer(self.sha256, files, packages).module(self.module), self.name)


def are_sources(sources: Mapping[str, str]) -> bool:
    """Whether these can be the sources of a part: few enough, not too large, and at paths that lead nowhere else."""
    few = len(sources) <= MOST_MODULES and sum(map(len, sources.values())) <= LARGEST
    return few and all(
        path.endswith(".py") and all(map(STEP.fullmatch, path.split("/"))) and ".py/" not in path for path in sources
    )


def hash_of(sources: Mapping[str, str]) -> str | None:
    """What `OwnPart.sha256` is of such sources; None: no part has any like these."""
    try:
        return _hash(sources)
    except SyntaxError:
        return None


def _hash(sources: Mapping[str, str]) -> str:
    texts = {path: _text(text, path) for path, text in sources.items()}
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()


def _text(source: str, path: str) -> str:
    tree = absolute(parsed(source, path), path)
    try:
        return tree_text(tree)
    except (ValueError, RecursionError):  # too long a number, or too deep an expression, to be written again
        return source


def module_of(path: str) -> str:
    """`a/b.py` is `a.b`, and `a/__init__.py` is `a`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def parsed(text: str, path: str) -> ast.Module:
    """The syntax tree of a source.

    Raises:
        SyntaxError: it is no Python.
    """
    try:
        return ast.parse(text, path)
    except (ValueError, MemoryError, RecursionError) as error:
        raise SyntaxError(str(error) or "nested too deep", (path, 1, 1, None)) from error


def absolute(tree: ast.Module, path: str) -> ast.Module:
    """The tree with each relative import made absolute, in place."""
    package = module_of(path).split(".")
    if not path.endswith("__init__.py"):
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            node.module, node.level = ".".join([*above, *([node.module] if node.module else [])]), 0
    return tree

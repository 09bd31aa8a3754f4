"""A custom component: its source as text."""

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from kdx.components.importing import import_module
from kdx.components.source import content_of, module_of, tree_of
from kdx.errors import KdxError, Place
from kdx.fingerprint import imports_of

LARGEST = 1_000_000
"""Characters of all modules; a database keeps them as JSON, in which one may take twelve."""


@dataclass(frozen=True)
class Component:
    """A class with its source, and the sources of the modules beside it that it imports."""

    axis: str
    """As a grid names it: `kernel`, `position`, …"""
    word: str
    """As a cell has it: `my_kernels.py:Cauchy`, or the name that a package gives it."""
    name: str
    """The name of the class."""
    path: str
    """The module with the class, one of `sources`."""
    sources: Mapping[str, str]
    """Path → text of each module; paths are relative to the folder of the file, or to that which holds the package."""
    package: str = ""
    """Name and version of the package that brings it; empty for a file."""
    folder: str = field(default="", compare=False)
    """Where it was read, for messages."""
    recorded: bool = field(default=False, compare=False)
    """Whether a database has it, so that it is known and never run."""

    @classmethod
    def read(cls, text: str) -> "Component":
        """Return the component of `text`."""
        return cls(**json.loads(text))

    @property
    def text(self) -> str:
        """All of it as JSON, for another process."""
        return json.dumps(asdict(self))

    @property
    def module(self) -> str:
        """The name of the module with the class, such as `my_kernels`."""
        return module_of(self.path)

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
        return {module: tree_of(self.sources[path], path) for module, path in self.paths.items()}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the syntax trees of its modules; comments, docstrings and layout do not count.

        Nor does the path of the module with the class: a file that was moved or renamed is the same component.

        Raises:
            SyntaxError: a source is no Python.
        """
        texts = {"" if path == self.path else path: content_of(text, path) for path, text in self.sources.items()}
        return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()

    @cached_property
    def kdx_modules(self) -> tuple[str, ...]:
        """The modules of kdx that it imports."""
        return tuple(dict.fromkeys(module for tree in self.trees.values() for module in imports_of(tree)))

    def file(self, module: str) -> str:
        """The path of a module as messages show it: relative to the folder of the grid, or inside the package."""
        folder = "" if self.package else self.word.rpartition(":")[0].rpartition("/")[0]
        return "/".join(filter(None, (folder, self.paths[module])))

    def place(self, module: str, line: int) -> Place:
        """A line of a module, for messages."""
        return Place(self.file(module), line, 1)

    @property
    def class_place(self) -> Place:
        """The line where its class begins; the first of its module if there is none."""
        classes = (node for node in self.trees[self.module].body if isinstance(node, ast.ClassDef))
        return self.place(self.module, next((node.lineno for node in classes if node.name == self.name), 1))

    def load(self) -> Any:
        """Run the source, once in a process, and return the class.

        Raises:
            KdxError: it is a record of a database.
            AttributeError: there is no such class after all.
            Exception: whatever the source raises.
        """
        if self.recorded:
            raise KdxError(f"`{self.word}` is known from a database, from which no code is run")
        files = {module: self.file(module) for module in self.paths}
        return getattr(import_module(self.sha256, self.module, self.sources, files), self.name)

"""A custom component: a class outside kdx, whose source is read as text and run only by what computes with it.

The source is kept as it was read, so a later edit of the file changes no planned run.
"""

import ast
import builtins
import hashlib
import json
import linecache
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from kdx.errors import KdxError, Place
from kdx.fingerprint import imports_of, tree_text


@dataclass(frozen=True)
class Component:
    """A class with its source, and the sources of the neighbouring modules that it imports."""

    axis: str
    """The axis as a grid names it: `kernel`, `position`, …"""
    word: str
    """Its name in a cell: `my_kernels.py:Cauchy`, or the name that a package gives it."""
    name: str
    """Name of the class."""
    path: str
    """Path of the module with the class, one of `sources`."""
    sources: Mapping[str, str]
    """Path → text of each module; paths are relative to the folder of the file, or of the package's parent."""
    package: str = ""
    """Name and version of the package that provides it; empty for a file."""
    folder: str = field(default="", compare=False)
    """Folder from which it was read, for messages."""
    recorded: bool = field(default=False, compare=False)
    """Whether it comes from a database; then it is never run."""

    @classmethod
    def read(cls, text: str) -> "Component":
        """Return the component that another process sent as `text`."""
        return cls(**json.loads(text))

    @property
    def text(self) -> str:
        """The component as JSON, for another process."""
        return json.dumps(asdict(self))

    @property
    def module(self) -> str:
        """Name of the module with the class, such as `my_kernels`."""
        return module_of(self.path)

    @cached_property
    def paths(self) -> Mapping[str, str]:
        """Module → path."""
        return {module_of(path): path for path in self.sources}

    @cached_property
    def trees(self) -> Mapping[str, ast.Module]:
        """Module → syntax tree with absolute imports.

        Raises:
            SyntaxError: a source is not Python.
        """
        return {module: tree_of(self.sources[path], path) for module, path in self.paths.items()}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the syntax trees of its modules, without comments, docstrings and layout.

        The path of the module with the class does not count: a file that was moved or renamed is the same component.

        Raises:
            SyntaxError: a source is not Python.
        """
        texts = {"" if path == self.path else path: self._content(module) for module, path in self.paths.items()}
        return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()

    def _content(self, module: str) -> str:
        try:
            return tree_text(self.trees[module])
        except (ValueError, RecursionError):  # a number that is too long, or an expression that is nested too deep
            return self.sources[self.paths[module]]

    @cached_property
    def kdx_modules(self) -> tuple[str, ...]:
        """The modules of kdx that it imports."""
        return tuple(dict.fromkeys(module for tree in self.trees.values() for module in imports_of(tree)))

    def file(self, module: str) -> str:
        """Return the path of a module for messages, relative to the folder of the grid or inside the package."""
        folder = "" if self.package else self.word.rpartition(":")[0].rpartition("/")[0]
        return "/".join(filter(None, (folder, self.paths[module])))

    @property
    def class_place(self) -> Place:
        """The line where the class begins; the first line of the module if it lacks the class."""
        classes = (node for node in self.trees[self.module].body if isinstance(node, ast.ClassDef))
        line = next((node.lineno for node in classes if node.name == self.name), 1)
        return Place(self.file(self.module), line, 1)

    def load(self) -> Any:
        """Run the source, once in a process, and return the class.

        Raises:
            KdxError: the component comes from a database.
            AttributeError: the source, once run, does not have the class.
            Exception: anything that the source raises.
        """
        if self.recorded:
            raise KdxError(f"`{self.word}` is known from a database, from which no code is run")
        # A copy of the file under another name has the same hash.
        package = f"kdx_component_{self.sha256[:16]}_{self.module.replace('.', '_')}"
        if package not in sys.modules:
            sys.modules[package] = ModuleType(package)
            sys.modules[package].__path__ = []
            sys.meta_path.insert(0, _Modules(package, self))
        return getattr(import_module(f"{package}.{self.module}"), self.name)


class _Modules(MetaPathFinder, Loader):
    """Imports the modules of one component from their texts, as submodules of a separate package.

    So two components may each have a `helpers.py`, and one process may load two versions of a file.
    """

    def __init__(self, package: str, component: Component) -> None:
        self._package = package
        self._sources = {
            module: (component.file(module), component.sources[path]) for module, path in component.paths.items()
        }
        # Folders without an __init__.py are packages too.
        folders = {name.rsplit(".", count)[0] for name in self._sources for count in range(1, name.count(".") + 1)}
        self._packages = {
            *folders,
            *(module for module, path in component.paths.items() if path.endswith("__init__.py")),
        }
        self._sources |= {name: (f"<{name}>", "") for name in folders - self._sources.keys()}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != self._package or name not in self._sources:
            return None
        spec = ModuleSpec(fullname, self, origin=self._sources[name][0], is_package=name in self._packages)
        spec.has_location = True  # sets `__file__`
        return spec

    def exec_module(self, module: ModuleType) -> None:
        file, text = self._sources[module.__name__.partition(".")[2]]
        # Tracebacks show the lines that ran, even if the file has changed since.
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import}
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as a statement does, except that `import helpers` means the component's own module."""
        if level or name not in self._sources:
            return __import__(name, globals, locals, fromlist, level)
        module = __import__(f"{self._package}.{name}", globals, locals, fromlist)
        return module if fromlist else sys.modules[f"{self._package}.{name.partition('.')[0]}"]


def module_of(path: str) -> str:
    """Return the module at a path: `a/b.py` is `a.b`, and `a/__init__.py` is `a`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def tree_of(text: str, path: str) -> ast.Module:
    """Return the syntax tree of a source, with each relative import made absolute.

    Args:
        path: path of the module, relative to the folder that holds the outermost package.

    Raises:
        SyntaxError: the source is not Python.
    """
    try:
        tree = ast.parse(text, path)
    except (ValueError, MemoryError, RecursionError) as error:
        raise SyntaxError(str(error) or "nested too deep", (path, 1, 1, None)) from error
    package = module_of(path).split(".")
    if not path.endswith("__init__.py"):
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            node.module, node.level = ".".join([*above, *([node.module] if node.module else [])]), 0
    return tree

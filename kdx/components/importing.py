"""Imports modules from texts that were read before, so that an edit in between changes nothing.

Each component's modules lie in a package named by its hash: two components may each have a `helpers.py`, and one
process may load two versions of a file.
"""

import ast
import importlib
import linecache
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType

from kdx.components.source import module_of, tree_of


def import_module(sha256: str, module: str, sources: Mapping[str, str], files: Mapping[str, str]) -> ModuleType:
    """Run a module from its text, once in a process, and those of the same component that it imports.

    Args:
        sha256: hash of the component.
        sources: path → text.
        files: module → path for messages.

    Raises:
        ModuleNotFoundError: there is no such module.
        Exception: whatever it raises.
    """
    # A copy of the file under another name has the same hash.
    package = f"kdx_component_{sha256[:16]}_{module.replace('.', '_')}"
    if not any(isinstance(one, _Modules) and one.package == package for one in sys.meta_path):
        sys.meta_path.insert(0, _Modules(package, sources, files))
    return importlib.import_module(f"{package}.{module}")


class _Modules(MetaPathFinder, ExecutionLoader):
    """Finds and loads the modules of one component."""

    def __init__(self, package: str, sources: Mapping[str, str], files: Mapping[str, str]) -> None:
        self.package = package
        self._sources = {module_of(path): (path, text) for path, text in sources.items()}
        self._files = files
        # Folders without an __init__.py are packages too; the outermost one, "", holds all modules.
        above = {name.rsplit(".", count)[0] for name in self._sources for count in range(1, name.count(".") + 1)}
        self._packages = {"", *above, *(module_of(path) for path in sources if path.endswith("__init__.py"))}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = self._name(fullname)
        here = f"{fullname}.".startswith(f"{self.package}.") and (name in self._sources or name in self._packages)
        spec = spec_from_loader(fullname, self) if here else None
        if spec and spec.submodule_search_locations:
            spec.submodule_search_locations = []  # else modules are looked for beside the path that messages show
        return spec

    def is_package(self, fullname: str) -> bool:
        return self._name(fullname) in self._packages

    def get_filename(self, fullname: str) -> str:
        return self._files.get(self._name(fullname), f"<{fullname}>")

    def get_source(self, fullname: str) -> str:
        return self._sources.get(self._name(fullname), ("", ""))[1]

    def get_code(self, fullname: str) -> CodeType:
        path, text = self._sources.get(self._name(fullname), ("", ""))
        file = self.get_filename(fullname)
        # Tracebacks show its lines, whatever the file holds by now.
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        tree = tree_of(text, path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and self._is_inner(node.module or ""):
                node.module = ".".join(filter(None, (self.package, node.module)))
            for block in ("body", "orelse", "finalbody"):
                if isinstance(statements := getattr(node, block, None), list):
                    statements[:] = [inner for one in statements for inner in self._imports(one)]
        code: CodeType = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
        return code

    def _imports(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statement, in which imports of the component's own modules are those of its package."""
        if not isinstance(statement, ast.Import):
            return [statement]
        made: list[ast.stmt] = []
        for alias in statement.names:
            name = f"{self.package}.{alias.name}" if self._is_inner(alias.name) else alias.name
            made.append(ast.Import([ast.alias(name, alias.asname)]))
            if name != alias.name and alias.asname is None:  # `import a.b` binds `a`
                made.append(ast.ImportFrom(self.package, [ast.alias(alias.name.partition(".")[0])], 0))
        return [ast.copy_location(one, statement) for one in made]

    def _is_inner(self, name: str) -> bool:
        return name in self._sources or name in self._packages

    def _name(self, fullname: str) -> str:
        return fullname.partition(".")[2]

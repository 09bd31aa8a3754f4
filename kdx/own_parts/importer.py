"""Imports modules from texts that were read before, so that an edit in between changes nothing."""

import builtins
import linecache
import sys
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import Any


class Importer:
    """Runs modules from their texts, each once in a process; what they import of each other comes from there as well.

    In `sys.modules` they have a name of their own, by their hash: two parts may each have a `helpers.py`.
    """

    def __init__(self, sha256: str, texts: Mapping[str, tuple[str, str]], packages: Collection[str]) -> None:
        """Takes module → (file for messages, text), and which modules are packages."""
        self._prefix = f"kdx_part_{sha256[:16]}"
        self._texts = texts
        self._packages = packages
        above = {name.rsplit(".", count)[0] for name in texts for count in range(1, name.count(".") + 1)}
        self._folders = above - texts.keys()  # without an __init__.py

    def module(self, name: str) -> ModuleType:
        """A module of these texts, with the packages around it.

        Raises:
            ModuleNotFoundError: there is none of this name.
            Exception: whatever its text raises.
        """
        whole = f"{self._prefix}.{name}"
        if whole in sys.modules:
            return sys.modules[whole]
        # Whoever looks a class up by the name of its module, as pickle does, imports what is around it first.
        around = sys.modules.setdefault(self._prefix, ModuleType(self._prefix))
        around.__path__ = []
        package, _, last = name.rpartition(".")
        parent = self.module(package) if package else None
        if name not in self._texts and name not in self._folders:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        module = ModuleType(whole)
        module.__package__ = whole if name in self._packages else whole.rpartition(".")[0]
        if name in self._packages or name in self._folders:
            module.__path__ = []
        sys.modules[whole] = module
        try:
            if name in self._texts:
                self._run(module, *self._texts[name])
        except BaseException:
            del sys.modules[whole]
            raise
        if parent is not None:
            setattr(parent, last, module)
        return module

    def _run(self, module: ModuleType, file: str, text: str) -> None:
        # Tracebacks show its lines, whatever stands in the file by now.
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        module.__file__ = file
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import}
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """What `import` does in these modules, see `builtins.__import__`."""
        if level:
            package = str((globals or {}).get("__package__", "")).removeprefix(self._prefix).removeprefix(".")
            above = package.split(".")[: len(package.split(".")) - level + 1]
            name = ".".join(filter(None, [*above, name]))
        elif name not in self._texts and name not in self._folders:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = self.module(name)
        if not fromlist:
            return self.module(name.partition(".")[0])
        for one in fromlist:
            inner = f"{name}.{one}"
            if not hasattr(module, one) and (inner in self._texts or inner in self._folders):
                self.module(inner)
        return module

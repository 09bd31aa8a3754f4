"""Delays the import of `scipy.signal`, which Lightning's torchmetrics searches for one name: 0.7 s of each start.

torchmetrics asks whether it has `hamming`, a name that scipy removed; the stand-in has it. Any other name loads
`scipy.signal` itself.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

NAME = "scipy.signal"


class _Late(ModuleType):
    hamming = None

    def __getattr__(self, name: str) -> Any:
        # Python asks every module for such names, for example to find the module of a class.
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
        return getattr(importlib.import_module(NAME), name)


def put_off() -> None:
    """Put a module in place of `scipy.signal` that imports it when one of its names is used."""
    sys.modules.setdefault(NAME, _Late(NAME))

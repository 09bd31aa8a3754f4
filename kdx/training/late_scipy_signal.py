"""Puts off `scipy.signal`, which Lightning's torchmetrics imports to look for one name: 0.7 s of each start.

It asks whether `hamming` is there, a name that scipy removed; here it is. Whoever asks for anything else gets all of
`scipy.signal`.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

NAME = "scipy.signal"


class _Late(ModuleType):
    hamming = None

    def __getattr__(self, name: str) -> Any:
        # Python itself asks every module for such names, as to find the one that a class is from.
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
        return getattr(importlib.import_module(NAME), name)


def put_off() -> None:
    """Lets whoever imports `scipy.signal` first have a module that imports it once something is asked of it."""
    sys.modules.setdefault(NAME, _Late(NAME))

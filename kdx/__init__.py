"""kdx dissects attention: declarative grids of Transformer runs, recorded in SQL, rendered as the paper's tables.

The path of one run: grid (YAML to plan) → sweep (what to start) → training (metrics) → store (rows) → report (table).
The Python interface is in `kdx.api`; this package has its names too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kdx.version import VERSION as __version__

if TYPE_CHECKING:
    from kdx import errors
    from kdx.api import curves, evaluations, load_grid, load_run, plan, runs, sweeps, table

__all__ = ["__version__", "curves", "errors", "evaluations", "load_grid", "load_run", "plan", "runs", "sweeps", "table"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    # `kdx --help` imports this package and should import little else.
    if name == "errors":
        return import_module("kdx.errors")
    if name in __all__:
        from kdx import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""kdx dissects attention: declarative grids of Transformer runs, recorded in SQL, rendered as the paper's tables.

The walk of one run: grid (YAML to plan) → sweep (what to start) → training (metrics) → store (rows) → report (table).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from kdx.runs.load_run import LoadedRun

__version__ = "0.1.0"


def load_run(database: "str | Path", run: int) -> "LoadedRun":
    """The model of a finished run, with the weights that were tested; see `kdx.runs.load_run.load_run`."""
    # Imports torch, which `import kdx` must not.
    from kdx.runs import load_run as module

    return module.load_run(database, run)

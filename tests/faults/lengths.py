"""How long the series of faults are: short in the quick suite, long on request.

KILLS=500 asks for the whole of the long series; RUN_KILLS, TREE_KILLS, GRIDS and so on for one of them.
"""

import os

SHARES = {
    "RUN_KILLS": 0.9,
    "TREE_KILLS": 0.1,
    "GRIDS": 2,
    "RUNS": 0.6,
    "WORKERS": 0.016,
    "WORKER_KILLS": 0.12,
    "STOPS": 0.04,
    "DROPS": 0.04,
    "OCCURRENCES": 0.01,
    "DAMAGES": 0.1,
    "JOURNALS": 2,
    "CUTS": 2,
    "DATABASES": 2,
}
"""Of KILLS, each kind of fault."""


def count(name: str, quick: int) -> int:
    """How many faults of a kind: NAME of the environment, else its share of KILLS, else a few."""
    share = SHARES[name] * int(os.environ.get("KILLS") or 0)
    return int(os.environ.get(name) or max(quick, round(share)))

"""Series of faults: short in the quick suite, long on request, each with figures to report.

KILLS=500 asks for the whole of the long series; RUN_KILLS, TREE_KILLS, GRIDS and so on for one of them.

A series draws from SEED, which it prints; the same SEED draws the same faults again.
"""

import os
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

FIGURES = "figure"
SHARES = {
    "RUN_KILLS": 0.9,
    "TREE_KILLS": 0.1,
    "GRIDS": 2,
    "RUNS": 0.6,
    "WORKER_KILLS": 0.12,
    "STOPS": 0.04,
    "OCCURRENCES": 0.01,
    "FLIPS": 0.6,
    "JOURNALS": 2,
}
"""Of KILLS, each kind of fault."""


@pytest.fixture(scope="session")
def seed() -> int:
    """Of every series of this session."""
    return int(os.environ.get("SEED") or random.SystemRandom().randrange(2**32))


@pytest.fixture
def series(seed, request, record_property) -> random.Random:
    """Random numbers of one series, which depend on SEED and on the test alone."""
    record_property(FIGURES, f"SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def figure(record_property):
    """Puts a line into the report."""
    return lambda text: record_property(FIGURES, text)


def count(name: str, quick: int) -> int:
    """How many faults of a kind: NAME of the environment, else its share of KILLS, else a few."""
    share = SHARES[name] * int(os.environ.get("KILLS") or 0)
    return int(os.environ.get(name) or max(quick, round(share)))


def pytest_terminal_summary(terminalreporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    told = [(report.nodeid, [text for name, text in report.user_properties if name == FIGURES]) for report in reports]
    if any(figures for _, figures in told):
        terminalreporter.section("faults")
    for place, figures in told:
        if figures:
            terminalreporter.write_line(f"{place.rpartition('::')[2]}: {'; '.join(figures)}")

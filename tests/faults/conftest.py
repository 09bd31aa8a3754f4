"""Series of faults: short in the quick suite, long on request (`make faults KILLS=500`), each with figures to report.

A series draws from SEED, which it prints; the same SEED draws the same faults again.
"""

import os
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

FIGURES = "figure"


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
    """How many faults of a kind: NAME of the environment, else a few."""
    return int(os.environ.get(name) or quick)


def pytest_terminal_summary(terminalreporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    told = [(report.nodeid, [text for name, text in report.user_properties if name == FIGURES]) for report in reports]
    if any(figures for _, figures in told):
        terminalreporter.section("faults")
    for place, figures in told:
        if figures:
            terminalreporter.write_line(f"{place.rpartition('::')[2]}: {'; '.join(figures)}")

"""Every benchmark runs, at a size too small to measure speed, so that none breaks when kdx changes."""

import math
from types import ModuleType
from typing import Any

import pytest

from tests.benchmarks import (
    attention,
    decoding,
    growth,
    run_cost,
    scale,
    startup,
    text,
    throughput,
)
from tests.benchmarks.__main__ import PARTS
from tests.benchmarks.orchestration.__main__ import TOOLS
from tests.benchmarks.orchestration.__main__ import measure as compare

pytestmark = pytest.mark.slow

# Part → its module, and what makes it small.
SMALL: dict[str, tuple[ModuleType, dict[str, Any]]] = {
    "startup": (startup, {"ROUNDS": 1, "FIRST_STEPS": 1, "VERIFY": ["--version"]}),
    "run_cost": (run_cost, {"RUNS": 2}),
    "attention": (
        attention,
        {
            "WIDTH": 16,
            "HEADS": 2,
            "SHORT": 16,
            "MIDDLE": 16,
            "LONG": 32,
            "LENGTHS": (4, 8),
            "ROUNDS": 1,
            "LINEAR_IN_MEMORY": ["rbf", "lookup", "linear"],
        },
    ),
    "throughput": (throughput, {"SCALES": {"mini": throughput.Turns(1, 1, 1)}, "PAIRS": 400, "STREAM": 10_000}),
    "text": (text, {"TOKENS": 500, "DISTINCT": 50, "HELD_OUT": {"valid": 100, "test": 100}, "BATCHED": (50,)}),
    "decoding": (decoding, {"BEAMS": (1, 2), "SENTENCES": 4, "ALONE": 2, "ROUNDS": 1}),
    "growth": (growth, {"SIZES": (10, 20, 30), "ROWS": 30, "SHAPES": {"cells": lambda runs: (runs, 1)}}),
    "scale": (
        scale,
        {
            "WORKERS": (4,),
            "ROUNDS": 1,
            "WARM": 1.0,
            "SECONDS": 2.0,
            "ENDS": 4.0,
            "PROCESSES": 2,
        },
    ),
}


def test_every_part_has_a_small_size():
    assert SMALL.keys() == PARTS.keys()


SLOW = ("run_cost", "growth", "scale")
"""Parts that start so many processes that even the small ones take long."""


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.long] if part in SLOW else []) for part in SMALL]
)
def test_a_part_measures(part, monkeypatch, data_home):
    module, sizes = SMALL[part]
    for name, size in sizes.items():
        monkeypatch.setattr(module, name, size)
    found = numbers(PARTS[part]())
    assert found and all(map(math.isfinite, found))


def numbers(found: Any) -> list[float]:
    """Return every number of a result; fails on text, which is given for what was not measured."""
    if isinstance(found, dict):
        return [number for value in found.values() for number in numbers(value)]
    if isinstance(found, list):
        return [number for value in found for number in numbers(value)]
    assert not isinstance(found, str), found
    return [] if found is None else [float(found)]


def test_kdx_is_compared_with_a_loop(data_home):
    tools = tuple(tool for tool in TOOLS if tool.name in ("loop in one process", "kdx, one worker"))
    table = compare(tools, runs=2, rounds=1)
    by_tool = {line.split(" | ")[0].strip("| "): line.split(" | ")[3:6] for line in table.splitlines()[2:4]}
    # The loop begins anew; kdx has both results without a run more than it was killed in.
    assert by_tool["loop in one process"][1] == "2"
    assert by_tool["kdx, one worker"][1] in ("0", "1") and by_tool["kdx, one worker"][2] == "2"

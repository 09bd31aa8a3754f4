"""The JSON of a table: full precision, and keys that programs can rely on."""

import pytest
from sweeps import cell, run, scored, sweep

from kdx.report.as_json import to_json
from kdx.report.tables import tables
from kdx.store.records import RunState


def test_every_place_has_all_keys_in_full_precision() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [*scored("a", (1.0, 30.0), (2.0, 32.000000001)), run("b", 0, state=RunState.DIVERGED)]
    asked = {"name": "main", "caption": "Kernels", "rows": ["kernel"], "columns": ["task"]}
    (table,) = tables(sweep(cells, runs, tables=[asked]))
    assert to_json(table) == {
        "name": "main",
        "caption": "Kernels",
        "rows": ["kernel"],
        "columns": ["task"],
        "shown": "best-seed",
        "notes": list(table.notes),
        "cells": [
            {
                "row": {"kernel": "rbf"},
                "column": {"task": "translation"},
                "cell": "a",
                "state": "value",
                "metric": "test/bleu",
                "direction": "max",
                "value": 32.000000001,
                "score": 32.000000001,
                "best": False,
                "near_best": False,
                "ahead_of_best": False,
                "run": 1,
                "seed": 1,
                "selected_by": "valid/bleu",
                "validation": 2.0,
                "mean": 31.0000000005,
                "sd": pytest.approx(1.4142135630802027, rel=1e-15),
                "interval": [pytest.approx(18.2938, abs=1e-4), pytest.approx(43.7062, abs=1e-4)],
                "n": 2,
                "expected_best_of": [31.0000000005, 32.000000001],
                "planned": 2,
                "completed": 2,
                "diverged": 0,
                "divergence_rate": None,
                "out_of_memory": 0,
                "failed": 0,
                "unfinished": 0,
                "seeds": [
                    {"seed": 0, "run_id": 0, "state": "completed", "validation": 1.0, "score": 30.0},
                    {"seed": 1, "run_id": 1, "state": "completed", "validation": 2.0, "score": 32.000000001},
                ],
            },
            {
                "row": {"kernel": "exponential"},
                "column": {"task": "translation"},
                "cell": "b",
                "state": "not converge",
                "metric": "test/bleu",
                "direction": "max",
                "value": None,
                "score": None,
                "best": False,
                "near_best": False,
                "ahead_of_best": False,
                "run": None,
                "seed": None,
                "selected_by": "valid/bleu",
                "validation": None,
                "mean": None,
                "sd": None,
                "interval": None,
                "n": 0,
                "expected_best_of": [],
                "planned": 1,
                "completed": 0,
                "diverged": 1,
                "divergence_rate": [pytest.approx(0.20654, abs=1e-5), 1.0],
                "out_of_memory": 0,
                "failed": 0,
                "unfinished": 0,
                "seeds": [{"seed": 0, "run_id": 0, "state": "diverged", "validation": None, "score": None}],
            },
        ],
        "errors": [
            {
                "task": "translation",
                "metric": "bleu",
                "cells": 1,
                "seeds": 2,
                "residual_sd": None,
                "degrees_of_freedom": None,
                "detectable_difference": None,
                "comparisons": 0,
                "detectable_corrected": None,
                "p_equal_spread": None,
            }
        ],
        "baseline": {},
        "differences": [],
        "unequal": [],
        "published": None,
    }


def test_places_that_the_plan_leaves_empty_are_left_out() -> None:
    cells = [cell("a", kernel="rbf", norm="pre"), cell("b", kernel="exponential", norm="post")]
    (table,) = tables(sweep(cells, [], tables=[{"name": "main", "rows": ["kernel"], "columns": ["norm"]}]))
    assert [each["cell"] for each in to_json(table)["cells"]] == ["a", "b"]

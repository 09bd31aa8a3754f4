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
        "notes": list(table.notes),
        "cells": [
            {
                "row": {"kernel": "rbf"},
                "column": {"task": "translation"},
                "cell": "a",
                "state": "value",
                "metric": "test/bleu",
                "direction": "max",
                "score": 32.000000001,
                "best": False,
                "run": 1,
                "seed": 1,
                "selected_by": "valid/bleu",
                "validation": 2.0,
                "mean": 31.0000000005,
                "sd": pytest.approx(1.4142135630802027, rel=1e-15),
                "n": 2,
                "planned": 2,
                "completed": 2,
                "diverged": 0,
                "failed": 0,
                "unfinished": 0,
            },
            {
                "row": {"kernel": "exponential"},
                "column": {"task": "translation"},
                "cell": "b",
                "state": "not converge",
                "metric": "test/bleu",
                "direction": "max",
                "score": None,
                "best": False,
                "run": None,
                "seed": None,
                "selected_by": "valid/bleu",
                "validation": None,
                "mean": None,
                "sd": None,
                "n": 0,
                "planned": 1,
                "completed": 0,
                "diverged": 1,
                "failed": 0,
                "unfinished": 0,
            },
        ],
    }


def test_places_that_the_plan_leaves_empty_are_left_out() -> None:
    cells = [cell("a", kernel="rbf", norm="pre"), cell("b", kernel="exponential", norm="post")]
    (table,) = tables(sweep(cells, [], tables=[{"name": "main", "rows": ["kernel"], "columns": ["norm"]}]))
    assert [each["cell"] for each in to_json(table)["cells"]] == ["a", "b"]

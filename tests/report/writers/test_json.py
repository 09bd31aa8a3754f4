"""The JSON of a table: full precision, and keys that programs can rely on."""

from math import exp, log, sqrt
from typing import Any

import pytest
from sweeps import cell, run, scored, seeded, sweep

from kdx.report.papers.paper_file import Claim, Contrast, Rule
from kdx.report.papers.verdicts import answers
from kdx.report.tables import tables
from kdx.report.writers.json import claim_to_json, to_json
from kdx.store.records import RunState


def seed_of(seed: int, state: str, validation: float | None, score: float | None) -> dict[str, Any]:
    known = {"seed": seed, "run_id": seed, "state": state, "validation": validation, "score": score}
    return {**known, "undertrained": None, "invalidated": None}


def test_every_place_has_all_keys_in_full_precision() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [*scored("a", (1.0, 30.0), (2.0, 32.000000001)), run("b", 0, state=RunState.DIVERGED)]
    spec = {"name": "main", "caption": "Kernels", "rows": ["kernel"], "columns": ["task"]}
    (table,) = tables(sweep(cells, runs, tables=[spec]))
    assert to_json(table) == {
        "name": "main",
        "caption": "Kernels",
        "rows": ["kernel"],
        "columns": ["task"],
        "shown": "best-seed",
        "notes": list(table.notes),
        "definitions": ["bleu ↑: higher is better."],
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
                "not_compared_with_best": False,
                "run": 1,
                "seed": 1,
                "selected_by": "valid/bleu",
                "validation": 2.0,
                "mean": 31.0000000005,
                "sd": pytest.approx(1.4142135630802027, rel=1e-15),
                "interval": [pytest.approx(18.2938, abs=1e-4), pytest.approx(43.7062, abs=1e-4)],
                "documents": None,
                "n": 2,
                "expected_best_of": [31.0000000005, 32.000000001],
                "planned": 2,
                "completed": 2,
                "diverged": 0,
                "divergence_rate": None,
                "pruned": 0,
                "invalidated": 0,
                "undertrained": 0,
                "out_of_memory": 0,
                "failed": 0,
                "unfinished": 0,
                "seeds": [
                    seed_of(0, "completed", 1.0, 30.0),
                    seed_of(1, "completed", 2.0, 32.000000001),
                ],
            },
            {
                "row": {"kernel": "exponential"},
                "column": {"task": "translation"},
                "cell": "b",
                "state": "diverged",
                "metric": "test/bleu",
                "direction": "max",
                "value": None,
                "score": None,
                "best": False,
                "near_best": False,
                "not_compared_with_best": False,
                "run": None,
                "seed": None,
                "selected_by": "valid/bleu",
                "validation": None,
                "mean": None,
                "sd": None,
                "interval": None,
                "documents": None,
                "n": 0,
                "expected_best_of": [],
                "planned": 1,
                "completed": 0,
                "diverged": 1,
                "divergence_rate": [pytest.approx(0.20654, abs=1e-5), 1.0],
                "pruned": 0,
                "invalidated": 0,
                "undertrained": 0,
                "out_of_memory": 0,
                "failed": 0,
                "unfinished": 0,
                "seeds": [seed_of(0, "diverged", None, None)],
            },
        ],
        "errors": [
            {
                "task": "translation",
                "metric": "bleu",
                "scale": "bleu",
                "cells": 1,
                "seeds": 0,
                "lowest_sd": None,
                "usual_sd": None,
                "highest_sd": None,
                "detectable_difference": None,
                "comparisons": 0,
                "detectable_corrected": None,
            }
        ],
        "baseline": {},
        "differences": [],
        "unequal": [],
        "published": None,
        "searches": [],
    }


def test_places_that_the_plan_leaves_empty_are_left_out() -> None:
    cells = [cell("a", kernel="rbf", norm="pre"), cell("b", kernel="exponential", norm="post")]
    (table,) = tables(sweep(cells, [], tables=[{"name": "main", "rows": ["kernel"], "columns": ["norm"]}]))
    assert [each["cell"] for each in to_json(table)["cells"]] == ["a", "b"]


def two(task: str, *scores: list[float], **options: Any) -> dict[str, Any]:
    cells = [cell(kernel, task, kernel=kernel) for kernel in ("rbf", "exponential")]
    runs = [run for its, values in zip(cells, scores, strict=True) for run in seeded(its.id, *values)]
    (table,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], **options}]))
    return to_json(table)


def test_a_difference_of_perplexities_is_in_nats_with_its_ratio() -> None:
    plain = two("prediction", [4.0, 4.2, 4.1], [5.0, 5.1, 5.3], baseline={"kernel": "exponential"})
    (difference,) = plain["differences"]
    gain = sum(map(log, (5.0, 5.1, 5.3))) / 3 - sum(map(log, (4.0, 4.2, 4.1))) / 3
    assert (difference["scale"], plain["errors"][0]["scale"]) == ("nats", "nats")
    assert difference["better_by"] == pytest.approx(gain) and difference["ratio"] == pytest.approx(exp(-gain))
    assert set(difference) == {
        *("row", "column", "against", "metric", "scale", "n", "better_by", "interval", "level", "p", "sd"),
        *("degrees_of_freedom", "ratio", "p_corrected", "p_correction", "effect", "margin", "p_equivalent"),
        *("randomisation", "documents"),
    }
    bleu = two("translation", [4.0, 4.2, 4.1], [5.0, 5.1, 5.3], baseline={"kernel": "exponential"})
    assert (bleu["differences"][0]["scale"], bleu["differences"][0]["ratio"]) == ("bleu", None)


def test_what_cells_have_in_common_is_told_with_the_spread_of_their_seeds() -> None:
    (plain,) = two("translation", [1.0, 2.0, 3.0], [10.0, 14.0, 18.0])["errors"]
    assert (plain["cells"], plain["seeds"], plain["comparisons"]) == (2, 3, 1)
    assert (plain["lowest_sd"], plain["highest_sd"]) == (1.0, 4.0)
    assert plain["usual_sd"] == pytest.approx(sqrt((1 + 16) / 2))
    assert plain["detectable_corrected"] == plain["detectable_difference"] > plain["usual_sd"]


def test_numbers_that_do_not_compare_say_why_and_what_would_compare_them() -> None:
    cells = [cell(f"c{lines}", data={"corpus": "synthetic", "train_lines": lines}) for lines in (10, 20)]
    runs = [run for cell in cells for run in seeded(cell.id, 1.0, 2.0)]
    (table,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["data.train_lines"]}]))
    (plain,) = to_json(table)["unequal"]
    places = {word: [{"row": {"data.train_lines": word}, "column": {}}] for word in ("10", "20")}
    assert plain == {
        "what": "data.train_lines",
        "task": "translation",
        "metric": "bleu",
        "compared": False,
        "instead": None,
        "values": places,
    }


def test_a_claim_has_what_each_setting_says_of_it() -> None:
    contrast = Contrast.model_validate({"a": {"kernel": "rbf"}, "b": {"kernel": "exponential"}, "expect": "better"})
    cells = [cell(kernel, kernel=kernel) for kernel in ("rbf", "exponential")]
    runs = [*seeded("rbf", 30.0, 31.0, 32.0), *seeded("exponential", 10.0, 11.0, 12.0)]
    plain = claim_to_json(
        answers(
            [Claim(id="c", statement="It works.", source="Sec. 1", holds=Rule(all=(contrast,)))], [sweep(cells, runs)]
        )[0]
    )
    (setting,) = plain.pop("settings")
    assert plain == {
        "id": "c",
        "statement": "It works.",
        "source": "Sec. 1",
        "pairs": None,
        "grids": [],
    }
    (outcome,) = setting.pop("contrasts")
    words = {"task": "translation", "data.corpus": "synthetic", "model.width": "128", "training.steps": "1000"}
    assert setting == {"setting": words, "verdict": "holds", "confounded_by": [], "more_seeds": None}
    assert outcome["cells"] == {"a": ["rbf"], "b": ["exponential"]}
    assert (outcome["better_by"], outcome["scale"], outcome["verdict"]) == (20.0, "bleu", "holds")
    assert outcome["allowed_errors"] == {
        "holds": pytest.approx(0.05),
        "does_not_hold": pytest.approx(0.05),
    }

"""The JSON of a table: full precision, and keys that programs can rely on."""

from math import exp, log, sqrt
from typing import Any

import pytest
from sweeps import cell, run, scored, seeded, sweep

from kdx.report.tables import tables
from kdx.report.writers.json import to_json
from kdx.store.records import RunState


def test_a_score_has_its_full_precision_and_a_place_without_one_has_the_same_keys() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [*scored("a", (1.0, 30.0), (2.0, 32.000000001)), run("b", 0, state=RunState.DIVERGED)]
    (table,) = tables(sweep(cells, runs, tables=[{"name": "main", "rows": ["kernel"], "columns": ["task"]}]))
    value, diverged = to_json(table)["cells"]
    assert (value["score"], value["mean"], value["validation"]) == (32.000000001, 31.0000000005, 2.0)
    assert value["sd"] == pytest.approx(1.4142135630802027, rel=1e-15)
    assert diverged.keys() == value.keys() and (diverged["state"], diverged["n"]) == ("diverged", 0)
    assert {diverged[key] for key in ("value", "score", "run", "validation", "mean", "sd", "interval")} == {None}
    assert diverged["divergence_rate"] == [pytest.approx(0.20654, abs=1e-5), 1.0]
    unknown = dict.fromkeys(("validation", "score", "undertrained", "invalidated"))
    assert diverged["seeds"] == [{"seed": 0, "run_id": 0, "state": "diverged", **unknown}]


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

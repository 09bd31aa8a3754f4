"""Numbers and notes as a reader sees them."""

from math import inf, nan

import pytest
from sweeps import cell, run, scored, sweep

from kdx.report.tables import tables
from kdx.report.wording import Words, column_headers, rounded, words
from kdx.store.records import RunState

DIVERGED, FAILED, PENDING = RunState.DIVERGED, RunState.FAILED, RunState.PENDING


@pytest.mark.parametrize(
    ("value", "metric", "told"),
    [
        (30.3149, "bleu", "30.31"),
        (4.126, "perplexity", "4.13"),
        (2.34567, "loss", "2.346"),
        (2.34567, "valid/loss", "2.346"),
        (-0.001, "bleu", "0.00"),
        (123456.789, "perplexity", "123456.79"),
        (1234567.0, "perplexity", "1.23e+06"),
        (nan, "loss", "nan"),
        (inf, "perplexity", "∞"),
        (-inf, "bleu", "-∞"),
    ],
)
def test_numbers_are_rounded_by_their_metric(value: float, metric: str, told: str) -> None:
    assert rounded(value, metric) == told


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        (scored("a", (1.0, 30.0), (2.0, 31.0)), Words("31.00", "30.50", "0.71", "(2)", aligned=True)),
        (scored("a", (1.0, 30.0)), Words("30.00", n="(1)", aligned=True)),
        ([], Words("–", aligned=True)),
        ([run("a", 0, state=FAILED), run("a", 1, state=PENDING)], Words("–", note="1/2 failed", aligned=True)),
        ([run("a", 0, state=DIVERGED), run("a", 1, state=PENDING)], Words("not converge (1/2)")),
        ([run("a", 0, state=DIVERGED), run("a", 1, state=FAILED)], Words("not converge (1/2)", note="1/2 failed")),
        (
            [run("a", 0, state=DIVERGED), run("a", 1, state=FAILED), run("a", 2, 1.0, 30.0)],
            Words("30.00", n="(1)", note="1/3 not converge, 1/3 failed", aligned=True),
        ),
        ([run("a", 0, nan, 30.0)], Words("–", note="1/1 without a score", aligned=True)),
    ],
)
def test_a_place_in_words(runs: list, told: Words) -> None:
    (found,) = tables(sweep([cell("a")], runs))[0].cells
    assert words(found, show_n=True) == told


def test_a_place_that_the_plan_leaves_empty_is_blank() -> None:
    assert words(None, show_n=True) == Words()


def headers(cells: list, **table: object) -> list[tuple[str, ...]]:
    return column_headers(tables(sweep(cells, [], tables=[{"name": "main", **table}]))[0])


def test_a_table_without_column_factors_is_headed_by_its_metric() -> None:
    assert headers([cell("a")], rows=["kernel"]) == [("bleu ↑",)]
    assert headers([cell("a"), cell("b", "prediction")], rows=["task"]) == [("score",)]


def test_the_metric_stands_under_the_task_where_columns_differ_in_it() -> None:
    cells = [cell(f"{t}{k}", t, kernel=k) for t in ("translation", "prediction") for k in ("rbf", "exponential")]
    assert headers(cells, rows=["symmetry"], columns=["task", "kernel"])[::3] == [
        ("translation", "bleu ↑", "rbf"),
        ("prediction", "perplexity ↓", "exponential"),
    ]
    assert headers(cells[:2], rows=["symmetry"], columns=["kernel"]) == [("rbf",), ("exponential",)]


def test_a_word_that_does_not_speak_for_itself_takes_its_factors_name() -> None:
    cells = [cell(f"{p}{s}", position=p, training={"steps": s}) for p in ("none", "product") for s in (10, 20)]
    assert headers(cells, rows=["kernel"], columns=["position", "training.steps"])[1:3] == [
        ("position none", "steps 20"),
        ("product", "steps 10"),
    ]

"""Numbers and notes as a reader sees them."""

from math import inf, nan

import pytest
from sweeps import cell, run, scored, seeded, sweep

from kdx.report.tables import tables
from kdx.report.wording import (
    Words,
    beside_scores,
    caption,
    column_headers,
    probability,
    rounded,
    signed,
    spans,
    unless_repeated,
    words,
)
from kdx.store.records import RunState

MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
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
        ([run("a", 0, state=FAILED), run("a", 1, state=FAILED)], Words("failed (2/2)")),
        ([run("a", 0, state=FAILED, error=MEMORY)], Words("out of memory (1/1)")),
        (
            [run("a", 0, state=FAILED, error=MEMORY), run("a", 1, state=FAILED, error="ValueError: no")],
            Words("failed (1/2)", note="1/2 out of memory"),
        ),
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


def test_a_mean_stands_with_half_of_its_interval() -> None:
    asked = {"name": "main", "rows": ["kernel"], "cell": "mean"}
    (found,) = tables(sweep([cell("a")], scored("a", (1.0, 30.0), (2.0, 31.0), (3.0, 32.0)), tables=[asked]))[0].cells
    # t(0.975; 2) · 1 / √3
    assert words(found, show_n=False) == Words("31.00", sd="2.48", aligned=True)


@pytest.mark.parametrize(
    ("value", "told"), [(1.234, "+1.23"), (-1.234, "−1.23"), (0.001, "0.00"), (-0.001, "0.00"), (-inf, "−∞")]
)
def test_a_difference_has_its_sign_unless_it_is_none(value: float, told: str) -> None:
    assert signed(value, "bleu") == told


def test_a_p_value_is_never_told_as_zero() -> None:
    assert (probability(0.0412), probability(1e-9)) == ("0.041", "< 0.001")


def below(cells: list, runs: list, **sweeping: object) -> list[str]:
    (table,) = tables(sweep(cells, runs, tables=[{"name": "main", "rows": ["kernel", "norm"]}], **sweeping))
    return caption(table, best="*")


def test_the_caption_tells_what_the_seeds_can_show_and_what_is_unequal() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential", training={"steps": 500})]
    numbers, resolution, seeds, steps = below(cells, [*seeded("a", 30.0, 31.0, 32.0), *seeded("b", 20.0, 21.5)])
    assert numbers.endswith("*: best of its column.")
    assert resolution == (
        "Differences: n = 2 seeds show 4.08 bleu and more (probability 0.8; paired by seed, residual sd 0.25, 1 degree "
        "of freedom)."
    )
    assert seeds == "Unequal seeds: 0–2 in rbf / post; 0–1 in exponential / post."
    assert steps == "Unequal training.steps: 1000 in rbf / post; 500 in exponential / post."


def test_the_caption_warns_of_cells_that_spread_unequally() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [*seeded("a", 30.0, 30.01, 30.02, 30.01), *seeded("b", 10.0, 40.0, 20.0, 35.0)]
    assert " Beware: the cells spread unequally (Bartlett's p < 0.001), so this is too strict" in below(cells, runs)[1]


def test_the_caption_names_few_cells_and_counts_many() -> None:
    kernels = ("exponential", "rbf", "polynomial", "cosine", "laplacian", "student-t", "elu")
    cells = [cell(k, kernel=k, training={"steps": 1 if k in kernels[4:] else 2}) for k in kernels]
    told = below(cells, [one for k in kernels for one in seeded(k, 1.0, 2.0)])[-1]
    assert told == ("Unequal training.steps: 2 in 4 cells; 1 in laplacian / post, student-t / post, elu / post.")


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


def test_what_stands_beside_the_scores_of_a_column_lines_up() -> None:
    parts = [Words("9.5", "9.38", "0.18", "(2)", aligned=True), Words("30.5", "120.00", n="(12)", aligned=True)]
    parts += [Words("failed (1/1)", note="why"), Words("1.0", "1.00", "1.00", "(1)", "1/2 failed", aligned=True)]
    assert beside_scores(parts) == [
        "  9.38 ± 0.18  (2)",
        "120.00        (12)",
        "why",
        "  1.00 ± 1.00  (1)  1/2 failed",
    ]
    assert beside_scores([Words("1.0", aligned=True), Words()]) == ["", ""]


def test_headers_with_the_same_words_above_them_are_one() -> None:
    headers = [("a", "x"), ("a", "y"), ("b", "y"), ("b", "y")]
    assert spans(headers, 0) == [("a", 2), ("b", 2)]
    assert spans(headers, 1) == [("x", 1), ("y", 1), ("y", 2)]
    assert [unless_repeated(headers, index) for index in range(4)] == [["a", "x"], ["", "y"], ["b", "y"], ["", ""]]
    assert unless_repeated(headers, 1, first=1) == ["a", "y"]

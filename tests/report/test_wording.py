"""Numbers and notes as a reader sees them."""

from math import exp, inf, nan, sqrt

import numpy as np
import pytest
from sweeps import cell, metric_of, run, scored, seeded, sweep

from kdx.metrics.decimals import rounded
from kdx.report.sheet import Score, Sheet
from kdx.report.sheets.listings import listings
from kdx.report.sheets.notes import caption
from kdx.report.sheets.scores import column_headers, words
from kdx.report.statistics.estimates import minimum_detectable_difference
from kdx.report.statistics.metric import Metric
from kdx.report.tables import tables
from kdx.report.wording import difference, interval, probability, signed
from kdx.store.records import Provenance, RunState

MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
DIVERGED, FAILED, PENDING, PRUNED = RunState.DIVERGED, RunState.FAILED, RunState.PENDING, RunState.PRUNED


@pytest.mark.parametrize(
    ("value", "metric", "text"),
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
def test_numbers_are_rounded_by_their_metric(value: float, metric: str, text: str) -> None:
    assert rounded(value, metric) == text


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (scored("a", (1.0, 30.0), (2.0, 31.0)), Score("31.00", "30.50", "0.71", "(2)", aligned=True)),
        (scored("a", (1.0, 30.0)), Score("30.00", n="(1)", aligned=True)),
        ([], Score("–", aligned=True)),
        ([run("a", 0, state=FAILED), run("a", 1, state=PENDING)], Score("–", note="failed 1/2", aligned=True)),
        ([run("a", 0, state=FAILED), run("a", 1, state=FAILED)], Score("failed 2/2")),
        ([run("a", 0, state=FAILED, error=MEMORY)], Score("out of memory 1/1")),
        (
            [run("a", 0, state=FAILED, error=MEMORY), run("a", 1, state=FAILED, error="ValueError: no")],
            Score("failed 1/2", note="out of memory 1/2"),
        ),
        ([run("a", 0, state=DIVERGED), run("a", 1, state=PENDING)], Score("diverged 1/2")),
        ([run("a", 0, state=DIVERGED), run("a", 1, state=FAILED)], Score("diverged 1/2", note="failed 1/2")),
        (
            [run("a", 0, state=DIVERGED), run("a", 1, state=FAILED), run("a", 2, 1.0, 30.0)],
            Score("30.00", n="(1)", note="diverged 1/3, failed 1/3", aligned=True),
        ),
        ([run("a", 0, 1.0, 30.0)._replace(invalidated="cut")], Score("invalidated 1/1")),
        (
            [run("a", 0, 1.0, 30.0)._replace(invalidated="cut"), run("a", 1, state=FAILED)],
            Score("failed 1/2", note="invalidated 1/2"),
        ),
        (
            [run("a", 0, 1.0, 30.0)._replace(invalidated="cut"), run("a", 1, state=PENDING)],
            Score("–", note="invalidated 1/2", aligned=True),
        ),
        ([run("a", 0, nan, 30.0)], Score("–", note="without a score 1/1", aligned=True)),
        (
            [run("a", 0, 1.0, state=PRUNED), run("a", 1, 2.0, state=PRUNED)],
            Score("–", note="pruned 2/2", aligned=True),
        ),
        (
            [run("a", 0, 1.0, 30.0), run("a", 1, 2.0, 40.0, state=PRUNED), run("a", 2, 1.0, 32.0)],
            Score("30.00", "31.00", "1.41", "(2)", "pruned 1/3", aligned=True),
        ),
        (
            [run("a", 0, 1.0, 30.0, undertrained="flat"), run("a", 1, state=DIVERGED), run("a", 2, 1.0, 30.0)],
            Score("30.00", "30.00", "0.00", "(2)", "diverged 1/3, undertrained 1/3", aligned=True),
        ),
    ],
)
def test_a_place_in_words(runs: list, text: Score) -> None:
    (result,) = tables(sweep([cell("a")], runs))[0].layout.cells
    assert words(result, show_n=True) == text


def test_a_mean_stands_with_half_of_its_interval() -> None:
    requests = {"name": "main", "rows": ["kernel"], "cell": "mean"}
    runs = scored("a", (1.0, 30.0), (2.0, 31.0), (3.0, 32.0))
    (result,) = tables(sweep([cell("a")], runs, tables=[requests]))[0].layout.cells
    # t(0.975; 2) · 1 / √3
    assert words(result, show_n=False) == Score("31.00", sd="2.48", aligned=True)


@pytest.mark.parametrize(
    ("value", "text"), [(1.234, "+1.23"), (-1.234, "−1.23"), (0.001, "0.00"), (-0.001, "0.00"), (-inf, "−∞")]
)
def test_a_difference_has_its_sign_unless_it_is_none(value: float, text: str) -> None:
    assert signed(value, "bleu") == text


def test_a_p_value_is_never_told_as_zero() -> None:
    assert (probability(0.0412), probability(1e-9)) == ("0.041", "< 0.001")


PERPLEXITY, BLEU = metric_of("perplexity"), metric_of("bleu")


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (0.1234567, PERPLEXITY, "+0.123"),
        (-0.1234567, PERPLEXITY, "−0.123"),
        (0.0001, PERPLEXITY, "0.000"),
        (inf, PERPLEXITY, "+∞"),
        (nan, PERPLEXITY, "nan"),
        (-0.1234567, BLEU, "−0.12"),
        (-inf, BLEU, "−∞"),
        (1e308, BLEU, "+1.00e+308"),
    ],
)
def test_a_difference_is_shown_on_the_scale_on_which_it_was_made(value: float, metric: Metric, text: str) -> None:
    assert difference(value, metric) == text


def test_an_interval_has_true_minuses_and_signs_where_it_is_of_differences() -> None:
    assert interval((-1.0, 2.0), "bleu") == "−1.00 to 2.00"
    assert interval((-1.0, 2.0), BLEU) == "−1.00 to +2.00"
    assert interval((-0.5, 0.25), PERPLEXITY) == "−0.500 to +0.250"


def below(cells: list, runs: list, *, full: bool = False, **sweeping: object) -> list[str]:
    (table,) = tables(sweep(cells, runs, tables=[{"name": "main", "rows": ["kernel", "norm"]}], **sweeping))
    return caption(table, best="*", full=full)


def differing(cells: list, runs: list) -> list[Sheet]:
    (table,) = tables(sweep(cells, runs, tables=[{"name": "main", "rows": ["kernel", "norm"]}]))
    return [sheet for sheet in listings(table, statistics=False, full=True) if "unequal" in sheet.key]


def unequal(task: str = "translation", scale: float = 1.0) -> tuple[list, list]:
    """Two cells that are far apart and were trained for 1000 and 500 steps, with three and two seeds."""
    cells = [cell("a", task, kernel="rbf"), cell("b", task, kernel="exponential", training=STEPS[task])]
    return cells, [
        *seeded("a", *(scale * x for x in (30.0, 31.0, 32.0))),
        *seeded("b", *(scale * x for x in (20.0, 21.5))),
    ]


STEPS = {"translation": {"steps": 500}, "prediction": {"steps": 500, "batch_tokens": 1280}}


def test_the_short_caption_tells_what_the_seeds_can_show_and_in_what_else_cells_differ() -> None:
    numbers, resolution, rest = below(*unequal())
    assert numbers.endswith("*: best mean of its column.")
    smallest = sqrt((1 + 1.125) / 2) * minimum_detectable_difference(2, sides=1)
    assert resolution == (
        f"A true difference of {smallest:.2f} BLEU between two cells would be shown with 80% probability; a smaller "
        "one may be missed."
    )
    assert rest == "Apart from kernel and norm, compared cells also differ in seeds and training.steps."


def test_seeds_that_one_cell_has_are_not_taken_for_those_of_two() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [run("a", 2, 30.0, 30.0, id=1), run("b", 0, 20.0, 20.0, id=2), run("b", 2, 21.0, 21.0, id=3)]
    (sheet,) = differing(cells, runs)
    assert sheet.texts(sheet.headers.index("seeds")) == ["2", "0, 2"]


def test_full_notes_add_definitions_and_spread_and_list_each_cell_by_what_differs() -> None:
    short, full = below(*unequal()), below(*unequal(), full=True)
    assert full[: len(short)] == short
    definitions, over, spread = full[len(short) :]
    assert definitions == "BLEU ↑: higher is better."
    assert over == "Intervals and marks are over seeds alone."
    assert spread == "Spread over seeds: standard deviations from 1.00 to 1.06 BLEU, root mean square 1.03."
    (sheet,) = differing(*unequal())
    assert sheet.headers == ("kernel", "norm", "seeds", "training.steps")
    assert sheet.rows == (("rbf", "post", "0–2", "1000"), ("exponential", "post", "0–1", "500"))
    assert sheet.notes == ()


def test_cells_that_differ_in_nothing_else_have_no_listing() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    assert differing(cells, [*seeded("a", 1.0, 2.0), *seeded("b", 1.0, 2.0)]) == []


def test_of_perplexities_the_smallest_difference_is_a_ratio_and_the_spread_in_nats() -> None:
    _, resolution, *_ = below(*unequal("prediction"))
    smallest = minimum_detectable_difference(2, sides=1) * sqrt(
        (np.var(np.log([30.0, 31.0, 32.0]), ddof=1) + np.var(np.log([20.0, 21.5]), ddof=1)) / 2
    )
    assert resolution.startswith(f"A true difference of {exp(smallest):.2f} times the perplexity between two cells ")
    full = below(*unequal("prediction"), full=True)
    assert any(" nats, root mean square " in each for each in full)
    # Whatever the size of the perplexities.
    assert below(*unequal("prediction", scale=100.0))[1] == resolution


def test_where_no_cell_is_marked_best_the_caption_says_what_that_takes() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    takes = "No cell is marked best: that takes two cells of two seeds each whose numbers compare."
    assert below(cells, [*seeded("a", 1.0), *seeded("b", 2.0)])[0].endswith(takes)
    assert below(cells, [*seeded("a", 1.0, 1.1), *seeded("b", 2.0)])[0].endswith(takes)
    assert takes not in below(cells, [*seeded("a", 1.0, 1.1), *seeded("b", 2.0, 2.1)])[0]
    assert takes not in below(cells, seeded("a", 1.0))[0], "nor would anybody expect one"


def test_the_marks_are_explained_where_they_stand() -> None:
    cells = [cell(kernel, kernel=kernel) for kernel in ("rbf", "exponential", "linear")]
    runs = [*seeded("rbf", 30.0, 31.0), *seeded("exponential", 30.1, 31.0), *seeded("linear", 40.0)]
    assert below(cells, runs)[0].endswith(
        "*: best mean of its column; †: may be the best as well: with 95% confidence the best of each column is "
        "among those so marked and the bold one (Hsu 1984; each column by itself); ‡: not compared "
        "with it: a single seed, or a score that is not finite, has no spread to judge by."
    )


def test_runs_that_continued_otherwise_are_listed_in_full_in_the_short_caption_too() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [*seeded("a", 1.0, 2.0), *seeded("b", 1.0, 2.0)]
    changed = {each.id: Provenance("d", "c", {}, {}, "torch 1 → 2") for each in runs if each.cell_id == "a"}
    text = "Unequal conditions while training: torch 1 → 2 (not bit-exact) in rbf / post."
    assert below(cells, runs, provenance=changed)[-1] == text


def headers(cells: list, **table: object) -> list[tuple[str, ...]]:
    return column_headers(tables(sweep(cells, [], tables=[{"name": "main", **table}]))[0].layout)


def test_a_table_without_column_factors_is_headed_by_its_metric() -> None:
    assert headers([cell("a")], rows=["kernel"]) == [("BLEU ↑",)]
    assert headers([cell("a"), cell("b", "prediction")], rows=["task"]) == [("score",)]


def test_the_metric_stands_under_the_task_where_columns_differ_in_it_and_else_over_all() -> None:
    cells = [cell(f"{t}{k}", t, kernel=k) for t in ("translation", "prediction") for k in ("rbf", "exponential")]
    assert headers(cells, rows=["symmetry"], columns=["task", "kernel"])[::3] == [
        ("translation", "BLEU ↑", "rbf"),
        ("prediction", "perplexity ↓", "exponential"),
    ]
    assert headers(cells[:2], rows=["symmetry"], columns=["kernel"]) == [("BLEU ↑", "rbf"), ("BLEU ↑", "exponential")]


def test_a_word_that_does_not_speak_for_itself_takes_its_factors_name() -> None:
    cells = [cell(f"{p}{s}", position=p, training={"steps": s}) for p in ("none", "product") for s in (10, 20)]
    assert headers(cells, rows=["kernel"], columns=["position", "training.steps"])[1:3] == [
        ("BLEU ↑", "position none", "steps 20"),
        ("BLEU ↑", "product", "steps 10"),
    ]

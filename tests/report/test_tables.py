"""What stands in each place of a table, and what its caption says."""

from math import inf, nan

import pytest
from sweeps import cell, marks, metric_of, run, scored, seeded, sweep

from kdx.report.selection.cells import Cell, Seed, State
from kdx.report.statistics.estimates import Summary
from kdx.report.table.comparisons import Mark
from kdx.report.tables import Table, tables
from kdx.store.records import RunState

BLEU = metric_of("bleu")
RULE = "Per cell, the test score of the seed with the best valid/bleu"


def only(table: Table) -> Cell:
    (single,) = table.layout.cells
    return single


def table_of(*runs: object, **choices: object) -> Table:
    """The table of a sweep with one cell, `a`."""
    return tables(sweep([cell("a")], runs, **choices))[0]


def test_a_place_holds_the_test_score_of_the_best_validation_seed_beside_mean_and_spread() -> None:
    table = table_of(*scored("a", (29.0, 31.0), (30.0, 28.0), (28.0, 34.0)))
    result = only(table)
    assert result == Cell(
        id="a",
        metric=BLEU,
        selected_by=metric_of("valid/bleu"),
        state=State.VALUE,
        run_id=1,
        seed=1,
        validation=30.0,
        score=28.0,
        summary=Summary(3, 31.0, 3.0),
        seeds=tuple(
            Seed(seed, seed, RunState.COMPLETED, *scores)
            for seed, scores in enumerate([(29.0, 31.0), (30.0, 28.0), (28.0, 34.0)])
        ),
    )
    assert (result.planned, result.completed, result.diverged, result.failed, result.unfinished) == (3, 3, 0, 0, 0)
    assert table.notes == (f"{RULE}; beside it mean ± standard deviation over n = 3 seeds.",)
    assert table.definitions == ("BLEU ↑: higher is better.",)


def test_scores_of_a_diverged_run_are_never_used() -> None:
    table = table_of(run("a", 0, 99.0, 99.0, RunState.DIVERGED), *scored("a", (1.0, 2.0))[:0], run("a", 1, 1.0, 2.0))
    result = only(table)
    assert (result.state, result.score, result.diverged) == (State.VALUE, 2.0, 1)
    assert result.summary == Summary(1, 2.0, None)


def test_another_metric_is_that_of_the_seed_selected_by_the_cells_own() -> None:
    runs = scored("a", (29.0, 31.0), (30.0, 28.0))
    metrics = {0: {"test/perplexity": 5.0}, 1: {"test/perplexity": 6.0}}
    table = table_of(*runs, tables=[{"name": "ppl", "rows": ["kernel"], "metric": "perplexity"}], metrics=metrics)
    result = only(table)
    assert (result.seed, result.score, result.metric) == (1, 6.0, metric_of("perplexity"))
    assert result.summary is not None and result.summary.mean == 5.5
    assert table.notes[0].startswith("Per cell, the test score of the seed with the best valid/bleu; ")
    assert table.definitions == ("perplexity ↓: lower is better.",)


def test_a_validation_metric_leaves_the_places_of_cells_that_another_chose_empty() -> None:
    cells = [cell("a"), cell("b", select={"metric": "loss"}), cell("c", "prediction")]
    spec = {"name": "dev", "rows": ["select.metric"], "metric": "valid/bleu"}
    (table,) = tables(sweep(cells, [], tables=[spec]))
    assert {at: cell.id for at, cell in table.layout.places.items()} == {(0, 0): "a"}


def test_a_metric_that_was_not_recorded_leaves_a_hole() -> None:
    table = table_of(*scored("a", (29.0, 31.0)), tables=[{"name": "ppl", "rows": ["kernel"], "metric": "perplexity"}])
    assert (only(table).state, only(table).summary) == (State.MISSING, None)


def test_a_metric_leaves_the_places_of_another_task_empty() -> None:
    cells = [cell("a"), cell("b", "prediction")]
    (table,) = tables(sweep(cells, [], tables=[{"name": "bleu", "rows": ["task"], "metric": "bleu"}]))
    assert {at: cell.id for at, cell in table.layout.places.items()} == {(0, 0): "a"}


def test_rows_are_the_axes_that_vary_and_columns_the_tasks_when_no_table_is_asked_for() -> None:
    cells = [
        cell(f"{task}-{kernel}", task, kernel=kernel, norm="pre")
        for task in ("translation", "prediction")
        for kernel in ("rbf", "exponential")
    ]
    runs = [run for each in cells for run in scored(each.id, (10.0, 10.0))]
    (table,) = tables(sweep(cells, runs, axes=["task", "kernel", "norm"], name="nightly"))
    assert (table.layout.name, table.layout.row_factors, table.layout.column_factors) == (
        "nightly",
        ("kernel",),
        ("task",),
    )
    assert table.layout.columns == (("translation",), ("prediction",))
    assert table.layout.metrics == (BLEU, metric_of("perplexity"))
    assert table.notes == (
        "Per cell, the test score of the seed with the best valid/bleu (translation) or valid/perplexity (prediction)"
        "; n = 1 seed.",
    )
    assert table.definitions == ("BLEU ↑: higher is better; perplexity ↓: lower is better.",)


@pytest.mark.parametrize("tasks", [["translation"], ["translation", "prediction"]])
def test_tasks_are_the_rows_when_nothing_else_varies(tasks: list[str]) -> None:
    (table,) = tables(sweep([cell(task, task) for task in tasks], []))
    assert (table.layout.row_factors, table.layout.column_factors) == (("task",), ())
    assert table.layout.rows == tuple((task,) for task in tasks)


def signs_of(*scores: list[float], task: str = "translation", **options: object) -> list[str]:
    """The mark of each cell, a kernel each: `*` best, `†` not distinguishable from it, `‡` not compared with it."""
    kernels = ("rbf", "exponential", "linear", "cosine")[: len(scores)]
    cells = [cell(kernel, task, kernel=kernel) for kernel in kernels]
    runs = [run for kernel, values in zip(kernels, scores, strict=True) for run in seeded(kernel, *values)]
    (table,) = tables(sweep(cells, runs, tables=[{"name": "main", "rows": ["kernel"], **options}]))
    signs = {Mark.BEST: "*", Mark.NOT_DISTINGUISHABLE: "†", Mark.UNTESTED: "‡", None: ""}
    return [signs[mark] for mark in marks(table)]


def test_the_best_of_a_column_has_the_best_mean_at_the_good_end() -> None:
    high, low = [20.0, 20.1], [10.0, 10.1]
    assert signs_of(low, high) == ["", "*"]
    assert signs_of(low, high, task="prediction") == ["*", ""]
    assert signs_of(low, high, cell="mean") == ["", "*"]


def test_the_best_is_not_the_best_selected_score() -> None:
    """The best validation seed of rbf has the best test score, and its others are far below."""
    runs = [
        run(kernel, seed, 9.0 - seed, score, id=10 * index + seed)
        for index, (kernel, values) in enumerate({"rbf": [12.5, 10.0, 10.1], "exponential": [12.0, 12.1, 12.0]}.items())
        for seed, score in enumerate(values)
    ]
    (table,) = tables(sweep([cell("rbf", kernel="rbf"), cell("exponential", kernel="exponential")], runs))
    assert [each.score for each in table.layout.cells] == [12.5, 12.0]
    assert marks(table)[1] is Mark.BEST and marks(table)[0] is not Mark.BEST
    assert table.legend[Mark.BEST] == "best mean of its column"


def test_the_best_perplexity_has_the_best_mean_of_logarithms() -> None:
    """Of 1 and 16 the mean is 8.5, but that of logarithms is that of 4 alone."""
    assert signs_of([1.0, 16.0], [5.0, 5.1], task="prediction") == ["*", "†"]
    assert signs_of([1.0, 16.0], [5.0, 5.1], task="prediction", metric="loss") == ["", ""], "no loss was recorded"


def test_equal_means_are_all_best() -> None:
    assert signs_of([10.0, 12.0], [11.0, 11.0], [11.0, 11.0]) == ["*", "*", "*"]


@pytest.mark.parametrize("others", [[], [[9.0]], [[nan, 12.0]], [[12.0, inf]]])
def test_a_best_takes_two_cells_that_can_be_compared(others: list[list[float]]) -> None:
    assert signs_of([10.0, 10.1], *others) == [""] * (1 + len(others))


@pytest.mark.parametrize("bad", [[25.0], [25.0, inf], [25.0, nan], [25.0, -inf]])
def test_what_cannot_be_compared_with_the_best_is_marked_as_such(bad: list[float]) -> None:
    """Without a mark it would read as worse."""
    (table,) = tables(
        sweep(
            [cell(name, kernel=name) for name in ("rbf", "linear", "cosine")],
            [
                *seeded("rbf", 20.0, 20.1),
                *seeded("linear", 10.0, 10.1),
                # The finite score is the one that is selected.
                *(run("cosine", seed, -seed, score, id=seed) for seed, score in enumerate(bad)),
            ],
            tables=[{"name": "main", "rows": ["kernel"]}],
        )
    )
    assert marks(table) == [
        Mark.BEST,
        None,
        Mark.UNTESTED,
    ]
    assert table.legend[Mark.UNTESTED].startswith("not compared with it: a single seed, or a score that is not finite")
    assert (table.layout.cells[2].value, table.layout.cells[2].compared) == (25.0, None)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("shown", ["best-seed", "mean"])
def test_a_value_that_is_not_finite_has_no_mark(bad: float, shown: str) -> None:
    for scores in ([bad], [bad, bad], [bad, bad, bad]):
        assert signs_of([20.0, 20.1], [10.0, 10.1], scores, cell=shown) == ["*", "", ""]
    assert signs_of([20.0, 20.1], [10.0, 10.1], [25.0, bad], cell="mean") == ["*", "", ""]


@pytest.mark.parametrize("task", ["translation", "prediction"])
def test_a_perplexity_below_zero_is_on_no_scale(task: str) -> None:
    worst = [-5.0, -5.1]
    assert signs_of([20.0, 20.1], [10.0, 10.1], worst, task=task) == (
        ["*", "", ""] if task == "translation" else ["", "*", ""]
    )


def test_a_place_without_a_score_has_no_mark_whatever_its_seeds_scored() -> None:
    """No validation score selects one of them."""
    cells = [cell(name, kernel=name) for name in ("rbf", "linear", "cosine")]
    hole = [run("cosine", seed, nan, 50.0 + seed, id=seed) for seed in range(2)]
    (table,) = tables(sweep(cells, [*seeded("rbf", 20.0, 20.1), *seeded("linear", 10.0, 10.1), *hole]))
    assert [each.state for each in table.layout.cells] == [State.VALUE, State.VALUE, State.MISSING]
    assert marks(table) == [
        Mark.BEST,
        None,
        None,
    ]

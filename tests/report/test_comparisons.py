"""Cells side by side: differences, their correction, the best and what cannot be told from it."""

from itertools import combinations
from math import nan

import numpy as np
import pytest
from scipy import stats
from sweeps import cell, run, scored, seeded, sweep

from kdx.report.latex import to_latex
from kdx.report.markdown import to_markdown
from kdx.report.table import Table
from kdx.report.tables import tables
from kdx.report.wording import caption
from kdx.store.records import RunRecord, RunState

RBF, EXP, POLY = [30.1, 31.4, 29.8, 30.9], [29.5, 30.2, 29.9, 30.0], [20.0, 22.0, 19.5, 20.5]
KERNELS = {"rbf": RBF, "exponential": EXP, "polynomial": POLY}


def table(
    *runs: RunRecord, kernels: tuple[str, ...] = tuple(KERNELS), task: str = "translation", **asked: object
) -> Table:
    cells = [cell(kernel, task, kernel=kernel) for kernel in kernels]
    runs = runs or tuple(one for kernel in kernels for one in seeded(kernel, *KERNELS[kernel]))
    return tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], **asked}]))[0]


def test_each_cell_stands_against_the_declared_baseline_and_positive_is_better() -> None:
    made = table(baseline={"kernel": "exponential"})
    against = {(one.at, one.against): one.estimate.value for one in made.differences if one.estimate}
    assert against == {((0, 0), (1, 0)): pytest.approx(0.65), ((2, 0), (1, 0)): pytest.approx(-9.4)}
    assert [one.n for one in made.differences] == [4, 4]
    down = table(baseline={"kernel": "exponential"}, task="prediction")
    assert [one.estimate.value for one in down.differences if one.estimate] == [
        pytest.approx(-0.65),
        pytest.approx(9.4),
    ]


def test_without_a_baseline_each_stands_against_the_best_of_its_column() -> None:
    assert [(one.at, one.against) for one in table().differences] == [((1, 0), (0, 0)), ((2, 0), (0, 0))]


def test_a_baseline_of_a_column_factor_is_taken_row_by_row() -> None:
    cells = [
        cell(f"{k}-{s}", kernel=k, symmetry=s) for k in ("rbf", "exponential") for s in ("asymmetric", "symmetric")
    ]
    runs = [one for each in cells for one in seeded(each.id, 1.0, 2.0)]
    asked = {"name": "t", "rows": ["kernel"], "columns": ["symmetry"], "baseline": {"symmetry": "asymmetric"}}
    (made,) = tables(sweep(cells, runs, tables=[asked]))
    assert [(one.at, one.against) for one in made.differences] == [((0, 1), (0, 0)), ((1, 1), (1, 0))]


def test_a_baseline_of_several_factors_is_one_cell_of_each_column() -> None:
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    runs = [one for each in cells for one in seeded(each.id, 1.0, 2.0)]
    asked = {"name": "t", "rows": ["kernel", "norm"], "baseline": {"kernel": "rbf", "norm": "pre"}}
    (made,) = tables(sweep(cells, runs, tables=[asked]))
    assert [(one.at, one.against) for one in made.differences] == [((row, 0), (0, 0)) for row in (1, 2, 3)]


def test_p_values_are_corrected_over_the_table_and_the_error_is_pooled() -> None:
    made = table(baseline={"kernel": "exponential"})
    close, far = made.differences
    assert close.estimate and far.estimate and close.estimate.df == far.estimate.df == 6
    assert far.p == pytest.approx(2 * far.estimate.p)
    assert close.p == pytest.approx(close.estimate.p)
    assert far.told_apart and not close.told_apart


def test_beside_the_pooled_error_stands_the_pairs_own() -> None:
    close, _ = table(baseline={"kernel": "exponential"}).differences
    assert close.alone and close.alone.p == pytest.approx(stats.ttest_rel(RBF, EXP).pvalue)


def test_equivalence_needs_a_stated_margin() -> None:
    close, far = table(baseline={"kernel": "exponential"}, margin={"bleu": 3.0}).differences
    assert close.equivalent and not far.equivalent
    unstated, _ = table(baseline={"kernel": "exponential"}).differences
    assert unstated.p_equivalent is None and not unstated.equivalent


def test_the_best_and_what_cannot_be_told_from_it() -> None:
    assert [(one.best, one.near) for one in table().cells] == [(True, False), (False, True), (False, False)]


def test_marks_of_the_best_are_corrected_for_all_pairs_of_every_column_and_differences_for_themselves() -> None:
    """The best is chosen from the same runs, so it is not one comparison with each of the others."""
    norms = ("pre", "post")
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for n in norms for k in KERNELS]
    shift = {"pre": 0.0, "post": 0.31}
    runs = [
        one
        for each in cells
        for k, n in [each.id.split("-")]
        for one in seeded(each.id, *(x + shift[n] * i for i, x in enumerate(KERNELS[k])))
    ]
    asked = {"name": "t", "rows": ["kernel"], "columns": ["norm"]}
    (made,) = tables(sweep(cells, runs, tables=[asked]))
    (pool,) = made.pools
    assert pool.model and pool.comparisons == 6
    of_columns = [
        pool.model.contrast({f"{a}-{n}": 1.0, f"{b}-{n}": -1.0}) for n in norms for a, b in combinations(KERNELS, 2)
    ]
    raw = sorted(one.p for one in of_columns if one)
    holm = np.minimum(1, np.maximum.accumulate([(6 - rank) * p for rank, p in enumerate(raw)]))
    expected = dict(zip(raw, holm, strict=True))
    assert len(made.differences) == 4
    for one in made.differences:
        assert one.estimate and one.p == pytest.approx(
            min(expected.items(), key=lambda e: abs(e[0] - one.estimate.p))[1]
        )
    (with_baseline,) = tables(sweep(cells, runs, tables=[{**asked, "baseline": {"kernel": "rbf"}}]))
    assert with_baseline.pools[0].comparisons == 4
    of_four, of_six = ({one.at: one.p for one in found.differences} for found in (with_baseline, made))
    assert of_four[2, 0] < of_six[2, 0] < 0.05
    assert [one.near for one in with_baseline.cells] == [one.near for one in made.cells]


def test_a_pair_that_stands_in_several_columns_is_tested_once() -> None:
    cells = [cell(kernel, kernel=kernel, labels={"n": n, "kernel": kernel}) for n in "xy" for kernel in KERNELS]
    runs = [one for kernel in KERNELS for one in seeded(kernel, *KERNELS[kernel])]
    (made,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], "columns": ["n"]}]))
    assert made.pools[0].comparisons == 3


def test_what_is_better_than_the_best_by_its_mean_is_not_said_to_be_like_it() -> None:
    """The best validation seed of rbf has the best test score, and its others are far below."""
    scores = {
        "rbf": [12.5, 10.0, 10.1, 9.9, 10.0, 10.1],
        "exponential": [12.0, 12.1, 12.0, 11.9, 12.0, 12.1],
        "polynomial": [9.0, 9.1, 9.2, 9.0, 9.1, 9.0],
    }
    runs = [
        run(kernel, seed, 9.0 - seed, score, id=100 * index + seed)
        for index, (kernel, its) in enumerate(scores.items())
        for seed, score in enumerate(its)
    ]
    made = table(*runs)
    assert [(one.best, one.near, one.ahead) for one in made.cells] == [
        (True, False, False),
        (False, False, True),
        (False, False, False),
    ]
    assert made.near == "" and made.ahead == "better than it by the mean over seeds (p < 0.05, corrected likewise)"
    assert "‡: better than it by the mean" in caption(made, best="*")[0]
    assert "12.00‡" in to_markdown(made) and "12.00\\rlap{$^\\ddagger$}" in to_latex(made)


def test_with_one_seed_nothing_is_said_to_be_near() -> None:
    made = table(*scored("rbf", (1.0, 2.0)), *scored("exponential", (1.0, 1.9)), kernels=("rbf", "exponential"))
    assert [(one.best, one.near) for one in made.cells] == [(True, False), (False, False)]
    assert made.near == "" and made.differences[0].estimate is None and made.differences[0].p is None


def test_a_score_that_is_no_number_compares_with_nothing() -> None:
    made = table(*seeded("rbf", *RBF), *seeded("exponential", nan, nan), kernels=("rbf", "exponential"))
    assert made.differences == () and made.pools[0].cells == 1


def test_cells_without_scores_and_those_of_another_task_are_left_out() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential"), cell("c", "prediction")]
    runs = [*seeded("a", *RBF), run("b", 0, state=RunState.DIVERGED), *seeded("c", *EXP)]
    (made,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], "columns": ["task"]}]))
    assert made.differences == ()
    assert [(one.task, one.cells, one.seeds, one.detectable) for one in made.pools] == [
        ("translation", 1, 4, None),
        ("prediction", 1, 4, None),
    ]


def test_a_cell_that_stands_in_two_places_counts_once_and_is_not_compared_with_itself() -> None:
    one, other = cell("same", labels={"approach": "x"}), cell("same", labels={"approach": "y"})
    third = cell("c", labels={"approach": "z"}, kernel="rbf")
    runs = [*seeded("same", *EXP), *seeded("c", *RBF)]
    asked = {"name": "t", "rows": ["approach"], "baseline": {"approach": "x"}}
    (made,) = tables(sweep([one, other, third], runs, tables=[asked]))
    assert made.pools[0].cells == 2
    assert [(one.at, one.against) for one in made.differences] == [((2, 0), (0, 0))]


def test_what_a_pool_can_show_goes_by_the_cell_with_the_fewest_seeds() -> None:
    made = table(*seeded("rbf", *RBF), *seeded("exponential", *EXP[:2]), kernels=("rbf", "exponential"))
    (pool,) = made.pools
    assert pool.seeds == 2 and pool.model and pool.detectable and pool.detectable > pool.model.sd

"""Cells side by side: differences, their correction, the best and what cannot be told from it."""

from math import inf, log, nan, sqrt

import numpy as np
import pytest
from scipy import stats
from sweeps import cell, marks, run, seeded, sweep

from kdx.report.statistics.estimates import minimum_detectable_difference
from kdx.report.table.comparisons import Mark
from kdx.report.tables import Table, tables
from kdx.store.records import RunRecord, RunState

RBF, EXP, POLY = [30.1, 31.4, 29.8, 30.9], [29.5, 30.2, 29.9, 30.0], [20.0, 22.0, 19.5, 20.5]
KERNELS = {"rbf": RBF, "exponential": EXP, "polynomial": POLY}


def table(
    *runs: RunRecord,
    kernels: tuple[str, ...] = tuple(KERNELS),
    task: str = "translation",
    select: dict[str, str] | None = None,
    **requests: object,
) -> Table:
    choices = {"select": select} if select else {}
    cells = [cell(kernel, task, labels={"kernel": kernel}, kernel=kernel, **choices) for kernel in kernels]
    runs = runs or tuple(each for kernel in kernels for each in seeded(kernel, *KERNELS[kernel]))
    return tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], **requests}]))[0]


def test_each_cell_stands_against_the_declared_baseline_and_positive_is_better() -> None:
    built = table(baseline={"kernel": "exponential"})
    against = {
        (difference.at, difference.against): difference.estimate.value
        for difference in built.differences
        if difference.estimate
    }
    assert against == {((0, 0), (1, 0)): pytest.approx(0.65), ((2, 0), (1, 0)): pytest.approx(-9.4)}
    assert [difference.n for difference in built.differences] == [4, 4]
    down = table(*losses(), baseline={"kernel": "exponential"}, select={"metric": "loss"})
    assert [difference.estimate.value for difference in down.differences if difference.estimate] == [
        pytest.approx(-0.65),
        pytest.approx(9.4),
    ]


def losses() -> list[RunRecord]:
    """The same scores, of which less is better."""
    return [each for kernel in KERNELS for each in seeded(kernel, *KERNELS[kernel])]


def test_without_a_baseline_each_stands_against_the_best_of_its_column() -> None:
    assert [(difference.at, difference.against) for difference in table().differences] == [
        ((1, 0), (0, 0)),
        ((2, 0), (0, 0)),
    ]


def test_a_baseline_of_a_column_factor_is_taken_row_by_row() -> None:
    cells = [
        cell(f"{k}-{s}", kernel=k, symmetry=s) for k in ("rbf", "exponential") for s in ("asymmetric", "symmetric")
    ]
    runs = [item for each in cells for item in seeded(each.id, 1.0, 2.0)]
    requests = {"name": "t", "rows": ["kernel"], "columns": ["symmetry"], "baseline": {"symmetry": "asymmetric"}}
    (built,) = tables(sweep(cells, runs, tables=[requests]))
    assert [(difference.at, difference.against) for difference in built.differences] == [
        ((0, 1), (0, 0)),
        ((1, 1), (1, 0)),
    ]


def test_a_baseline_of_several_factors_is_one_cell_of_each_column() -> None:
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    runs = [item for each in cells for item in seeded(each.id, 1.0, 2.0)]
    requests = {"name": "t", "rows": ["kernel", "norm"], "baseline": {"kernel": "rbf", "norm": "pre"}}
    (built,) = tables(sweep(cells, runs, tables=[requests]))
    assert [(difference.at, difference.against) for difference in built.differences] == [
        ((row, 0), (0, 0)) for row in (1, 2, 3)
    ]


def welch(a: list[float], b: list[float], sides: int = 2) -> float:
    """The p-value by the spread of these two alone; one-sided, that the mean of a is not below that of b."""
    variances = np.array([np.var(a, ddof=1) / len(a), np.var(b, ddof=1) / len(b)])
    error = sqrt(variances.sum())
    df = min((np.array([len(a), len(b)]) - 1) * variances.sum() / variances)
    t = (np.mean(a) - np.mean(b)) / error
    return float(2 * stats.t.sf(abs(t), df) if sides == 2 else stats.t.cdf(t, df))


def test_one_bad_seed_of_another_cell_changes_nothing_for_a_pair() -> None:
    steady, wild = (
        table(
            *seeded("rbf", 4.2, 4.25, 4.22, 4.21),
            *seeded("exponential", 4.6, 4.65, 4.62, 4.61),
            *seeded("polynomial", 4.6, 4.65, 4.62, last),
            task="prediction",
        )
        for last in (4.61, 8.0)
    )
    assert Mark.NOT_DISTINGUISHABLE not in marks(steady)
    assert [mark is Mark.NOT_DISTINGUISHABLE for mark in marks(wild)] == [False, False, True]
    assert steady.differences[0] == wild.differences[0]


def test_equivalence_needs_a_stated_margin() -> None:
    close, far = table(baseline={"kernel": "exponential"}, margin={"bleu": 3.0}).differences
    assert close.equivalent and not far.equivalent
    assert close.margin == 3.0 and close.estimate and close.p_equivalent == close.estimate.p_equivalent(3.0)
    unstated, _ = table(baseline={"kernel": "exponential"}).differences
    assert unstated.p_equivalent is None and not unstated.equivalent


def margin(task: str, stated: float | str, metric: str) -> float | None:
    requests = {"baseline": {"kernel": "exponential"}, "margin": {metric: stated}}
    return table(task=task, **requests).differences[0].margin


def test_a_margin_is_in_units_of_the_metric_or_a_share_of_the_other_score() -> None:
    mean = np.mean(EXP)
    assert margin("translation", 0.5, "bleu") == 0.5
    assert margin("translation", "1%", "bleu") == pytest.approx(0.01 * mean)
    # In nats, in which perplexities are compared.
    assert margin("prediction", "1%", "perplexity") == pytest.approx(log(1.01))
    assert margin("prediction", 0.5, "perplexity") == pytest.approx(log((mean + 0.5) / mean))
    assert margin("prediction", 0.5, "loss") is None, "of another metric"


@pytest.mark.parametrize("scores", [[-1.0, 1.0], [1.0, -1.2], [0.0, 2.0], [inf, 2.0]])
@pytest.mark.parametrize("stated", [0.5, "1%"])
def test_no_margin_is_taken_from_perplexities_that_have_no_logarithm(scores: list[float], stated: float | str) -> None:
    runs = [*seeded("rbf", 2.0, 3.0), *seeded("exponential", *scores)]
    requests = {"baseline": {"kernel": "exponential"}, "margin": {"perplexity": stated}}
    (difference,) = table(*runs, kernels=("rbf", "exponential"), task="prediction", **requests).differences
    assert (difference.estimate, difference.margin, difference.p_equivalent) == (None, None, None)


def columns(**requests: object) -> Table:
    """Kernels in rows, in two columns; in the second one the kernels are further apart."""
    norms = {"pre": 0.0, "post": 0.31}
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for n in norms for k in KERNELS]
    runs = [
        item
        for each in cells
        for k, n in [each.id.split("-")]
        for item in seeded(each.id, *(x + norms[n] * i for i, x in enumerate(KERNELS[k])))
    ]
    return tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], "columns": ["norm"], **requests}]))[0]


def test_what_is_worse_than_the_best_is_corrected_for_those_compared_in_its_column() -> None:
    """The best is chosen from the same runs, and a cell may be the best in truth: it is tested against every rival."""
    built = columns()
    assert built.groups[0].comparisons == 2 and built.groups[0].sides == 1
    assert len(built.differences) == 4
    scores = {at: [*result.scores.values()] for at, result in built.layout.places.items()}
    for difference in built.differences:
        assert difference.against[0] == 0 and difference.against[1] == difference.at[1]
        assert difference.p == pytest.approx(
            min(1.0, 2 * welch(scores[difference.at], scores[difference.against], sides=1))
        )
        assert (built.marks.get(difference.at) is Mark.NOT_DISTINGUISHABLE) is (
            difference.p is not None and difference.p >= 0.05
        )
    meaning = built.legend[Mark.NOT_DISTINGUISHABLE]
    assert "with 95% confidence" in meaning and "each column by itself" in meaning


def test_a_baseline_corrects_for_its_own_comparisons_and_leaves_the_marks_as_they_are() -> None:
    built, declared = columns(), columns(baseline={"kernel": "exponential", "norm": "post"})
    assert (declared.groups[0].comparisons, declared.groups[0].sides) == (5, 2)
    raw = sorted(difference.estimate.p for difference in declared.differences if difference.estimate)
    holm = np.minimum(1, np.maximum.accumulate([(5 - rank) * p for rank, p in enumerate(raw)]))
    assert sorted(difference.p for difference in declared.differences if difference.p is not None) == pytest.approx(
        holm
    )
    assert (declared.marks, declared.legend) == (built.marks, built.legend)


def test_the_best_of_each_column_is_compared_in_each() -> None:
    cells = [cell(kernel, kernel=kernel, labels={"n": n, "kernel": kernel}) for n in "xy" for kernel in KERNELS]
    runs = [each for kernel in KERNELS for each in seeded(kernel, *KERNELS[kernel])]
    (built,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], "columns": ["n"]}]))
    assert (built.groups[0].comparisons, built.groups[0].cells) == (2, 3)
    assert [mark is Mark.BEST for mark in marks(built)] == [True, True, False, False, False, False]


def test_a_cell_with_a_score_that_is_not_finite_is_not_compared_by_the_others_that_it_has() -> None:
    runs = [*seeded("rbf", *RBF), *seeded("exponential", *EXP), *seeded("polynomial", *POLY[:3], nan)]
    built = table(*runs)
    close, far = built.differences
    assert close.estimate and far.estimate is None and far.p is None
    assert marks(built) == [
        Mark.BEST,
        Mark.NOT_DISTINGUISHABLE,
        Mark.UNTESTED,
    ]
    assert built.groups[0].comparisons == 1, "nothing is corrected for what is not tested"


def test_cells_without_scores_and_those_of_another_task_are_left_out() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential"), cell("c", "prediction")]
    runs = [*seeded("a", *RBF), run("b", 0, state=RunState.DIVERGED), *seeded("c", *EXP)]
    (built,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], "columns": ["task"]}]))
    assert built.differences == ()
    assert [
        (group.task, group.cells, group.seeds, group.minimum_detectable_difference()) for group in built.groups
    ] == [
        ("translation", 1, 0, None),
        ("prediction", 1, 0, None),
    ]


def test_a_cell_that_stands_in_two_places_counts_once_and_is_not_compared_with_itself() -> None:
    first, other = cell("same", labels={"approach": "x"}), cell("same", labels={"approach": "y"})
    third = cell("c", labels={"approach": "z"}, kernel="rbf")
    runs = [*seeded("same", *EXP), *seeded("c", *RBF)]
    requests = {"name": "t", "rows": ["approach"], "baseline": {"approach": "x"}}
    (built,) = tables(sweep([first, other, third], runs, tables=[requests]))
    assert built.groups[0].cells == 2
    assert [(difference.at, difference.against) for difference in built.differences] == [((2, 0), (0, 0))]
    (marked,) = tables(sweep([first, other, third], runs, tables=[{"name": "t", "rows": ["approach"]}]))
    assert marked.groups[0].comparisons == 1
    assert marks(marked) == [Mark.NOT_DISTINGUISHABLE, Mark.NOT_DISTINGUISHABLE, Mark.BEST]


def test_what_a_group_can_show_goes_by_the_cell_with_the_fewest_seeds_and_the_usual_spread() -> None:
    (group,) = table(*seeded("rbf", *RBF), *seeded("exponential", *EXP[:2]), *seeded("polynomial", 9.0)).groups
    low, high = sorted((np.std(RBF, ddof=1), np.std(EXP[:2], ddof=1)))
    usual = sqrt((low**2 + high**2) / 2)
    assert (group.cells, group.seeds) == (3, 2), "a single seed has no spread"
    assert group.spread == pytest.approx((low, usual, high))
    assert group.minimum_detectable_difference() == pytest.approx(usual * minimum_detectable_difference(2, sides=1))
    (wide,) = columns(baseline={"kernel": "rbf"}).groups
    alone, corrected = (wide.minimum_detectable_difference(corrected=corrected) for corrected in (False, True))
    assert wide.spread and corrected == pytest.approx(wide.spread[1] * minimum_detectable_difference(4, 4, sides=2))
    assert alone and corrected and alone < corrected


def test_equal_scores_of_all_seeds_show_no_difference_that_could_be_found() -> None:
    runs = [*seeded("rbf", 100.0, 100.0), *seeded("exponential", 100.0, 100.0)]
    (group,) = table(*runs, kernels=("rbf", "exponential")).groups
    assert group.spread == (0.0, 0.0, 0.0) and group.minimum_detectable_difference() is None


def test_a_baseline_may_be_a_number_written_whole_whatever_words_other_factors_have() -> None:
    """The cells have 1.0 and 2.0, and another factor of the table has the words 1 and 2."""
    settings = [(clip, layers) for clip in (1.0, 2.0) for layers in (1, 2)]
    cells = [
        cell(f"c{clip}{layers}", training={"clip": clip}, model={"encoder_layers": layers}) for clip, layers in settings
    ]
    runs = [run for each in cells for run in seeded(each.id, 30.0, 31.0)]
    spec = {"name": "t", "rows": ["model.encoder_layers", "training.clip"], "baseline": {"training.clip": "2"}}
    (built,) = tables(sweep(cells, runs, tables=[spec]))
    against = {
        (built.layout.rows[difference.at[0]], built.layout.rows[difference.against[0]])
        for difference in built.differences
    }
    assert against == {((layers, "1.0"), (layers, "2.0")) for layers in "12"}

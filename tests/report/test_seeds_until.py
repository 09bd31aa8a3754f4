"""Which seeds a rule needs, and what a table says where a rule chose them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import cell, run, seeded, sweep

from kdx.report.seeds_until import Needed, needed_seeds, unneeded_runs, without_unneeded
from kdx.report.selection.joined import joined
from kdx.report.sheets.notes import caption
from kdx.report.table.audit import SEEDS_BY_RULE
from kdx.report.tables import tables
from kdx.store.records import RunRecord, RunState, SweepRecord

RULE = {"min": 3, "max": 6, "until": "decided"}
TABLE = {"name": "t", "rows": ["kernel"], "baseline": {"kernel": "exponential"}, "cell": "mean"}
KERNELS = ("exponential", "rbf", "linear")
BASE = [30.0, 30.1, 29.9, 30.05, 29.95, 30.0]
FAR = [20.0, 20.1, 19.9, 20.05, 19.95, 20.0]
NEAR = [30.35, 29.8, 30.0, 30.1, 29.9, 30.05]


def sweep_of(scores: dict[str, list[float]], *, rule=RULE, table=TABLE, planned: int = 6, **more) -> SweepRecord:
    """A sweep in which the first seeds of each kernel have these scores, and the others wait."""
    cells = [cell(kernel, labels={"kernel": kernel}, kernel=kernel) for kernel in scores]
    runs: list[RunRecord] = []
    for kernel, values in scores.items():
        runs += seeded(kernel, *values)
        first = 1000 * (1 + sum(map(ord, kernel)))
        waiting = range(len(values), planned)
        runs += [run(kernel, s, state=RunState.PENDING, id=first + s)._replace(attempt=0) for s in waiting]
    built = sweep(cells, runs, tables=[table], **more)
    return replace(built, grid={**built.grid, "seed_rule": rule})


def first(n: int, **scores: list[float]) -> dict[str, list[float]]:
    return {kernel: values[:n] for kernel, values in scores.items()}


def test_before_the_first_look_every_cell_needs_the_fewest_seeds():
    for n in range(3):
        result = needed_seeds(sweep_of(first(n, exponential=BASE, rbf=FAR, linear=NEAR)))
        waiting = Needed(3, "if the comparison is still open after 3 seeds", True)
        assert result == dict.fromkeys(KERNELS, waiting)


def test_a_decided_cell_stops_and_the_baseline_continues_with_those_that_are_open():
    result = needed_seeds(sweep_of(first(3, exponential=BASE, rbf=FAR, linear=NEAR)))
    assert result["rbf"] == Needed(3, "decided after 3 seeds", False)
    assert result["linear"] == result["exponential"] == Needed(4, "if the comparison is still open after 4 seeds", True)


def test_a_look_waits_for_the_last_seed_of_the_last_cell():
    scores = first(3, exponential=BASE, rbf=FAR, linear=NEAR)
    scores["linear"] = scores["linear"][:2]
    assert {needed_seed.seeds for needed_seed in needed_seeds(sweep_of(scores)).values()} == {3}


def test_at_the_most_seeds_the_rule_ends_undecided():
    scores = {"exponential": BASE, "linear": NEAR}
    result = needed_seeds(sweep_of(scores))
    assert all(each.seeds == 6 and not each.open for each in result.values())
    (table,) = tables(sweep_of(scores))
    assert "Not decided after 6 seeds, the most: linear." in table.notes


def test_a_word_that_is_unclear_alone_has_the_name_of_its_factor():
    built = sweep_of({"exponential": BASE, "linear": NEAR}, table={**TABLE, "columns": ["position"]})
    cells = tuple(replace(each, labels={**each.labels, "position": "none"}) for each in built.cells)
    (table,) = tables(replace(built, cells=cells))
    assert "Not decided after 6 seeds, the most: linear / position none." in table.notes


def test_equal_within_the_margin_is_decided_too():
    wide = {**TABLE, "margin": {"bleu": 8}}
    result = needed_seeds(sweep_of(first(3, exponential=BASE, linear=NEAR), table=wide))
    assert result["linear"] == Needed(3, "decided after 3 seeds", False)


def test_a_cell_that_no_table_compares_has_the_fewest_seeds():
    grid = sweep_of(first(3, exponential=BASE, rbf=FAR, linear=NEAR), table={**TABLE, "where": {"kernel": "rbf"}})
    others = {**TABLE, "where": {}, "baseline": {}}
    alone = replace(grid, grid={**grid.grid, "tables": [others]})
    assert {needed_seed.why for needed_seed in needed_seeds(alone).values()} == {"no table compares it with a baseline"}


def test_another_table_may_need_more_seeds_of_the_same_cell():
    other = {**TABLE, "name": "u", "baseline": {"kernel": "rbf"}}
    grid = sweep_of(first(3, exponential=BASE, rbf=FAR, linear=NEAR))
    both = replace(grid, grid={**grid.grid, "tables": [TABLE, other]})
    alone = replace(grid, grid={**grid.grid, "tables": [other]})
    assert needed_seeds(alone)["linear"] == Needed(3, "decided after 3 seeds", False)
    assert needed_seeds(both)["linear"].seeds == 4


@pytest.mark.parametrize("state", [RunState.DIVERGED, RunState.FAILED, RunState.CANCELLED, RunState.PRUNED])
def test_a_seed_that_gives_no_score_holds_no_look_up(state):
    scores = first(3, exponential=BASE, rbf=FAR, linear=NEAR)
    built = sweep_of(scores)
    runs = tuple(
        each._replace(state=state, test_score=None) if (each.cell_id, each.seed) == ("linear", 1) else each
        for each in built.runs
    )
    result = needed_seeds(replace(built, runs=runs))
    assert result["rbf"].why == "decided after 3 seeds" and result["linear"].seeds == 4


def test_a_cell_of_which_no_seed_has_a_score_gets_no_more():
    built = sweep_of(first(3, exponential=BASE, rbf=FAR, linear=NEAR))
    runs = tuple(
        each._replace(state=RunState.DIVERGED, test_score=None)
        if each.cell_id == "linear" and each.state is RunState.COMPLETED
        else each
        for each in built.runs
    )
    result = needed_seeds(replace(built, runs=runs))
    assert result["linear"] == Needed(3, "cannot be compared after 3 seeds", False)
    assert not result["exponential"].open


@settings(deadline=None, max_examples=15)
@given(st.randoms(use_true_random=False), st.integers(0, 2**32 - 1))
def test_seeds_do_not_depend_on_the_order_in_which_runs_end(random, seed):
    """A sweep that starts what is needed in any order comes to the same seeds."""
    rng = np.random.default_rng(seed)
    scores = {kernel: [float(x) for x in rng.normal(30 + 2 * i, 1, 6)] for i, kernel in enumerate(KERNELS)}

    def swept(choose) -> dict[str, int]:
        had = dict.fromkeys(KERNELS, 0)
        while True:
            result = needed_seeds(sweep_of({kernel: scores[kernel][: had[kernel]] for kernel in KERNELS}))
            able = [kernel for kernel in KERNELS if had[kernel] < result[kernel].seeds]
            if not able:
                assert not any(each.open for each in result.values())
                return had
            had[choose(able)] += 1

    assert swept(random.choice) == swept(lambda able: able[0])


def test_without_a_rule_nothing_is_stated_of_seeds():
    built = sweep_of(first(3, exponential=BASE))
    plain = replace(built, grid={"tables": [TABLE], "axes": []})
    assert needed_seeds(plain) == {} and unneeded_runs(plain) == {} and without_unneeded(plain) is plain


def test_runs_that_are_not_needed_are_no_holes():
    built = sweep_of(first(3, exponential=BASE, rbf=FAR))
    assert len(without_unneeded(built).runs) == 6
    assert set(unneeded_runs(built).values()) == {"decided after 3 seeds"} and len(unneeded_runs(built)) == 6
    (table,) = tables(built)
    assert [each.unfinished for each in table.layout.cells] == [0, 0] and table.layout.n == 3
    (open_,) = tables(sweep_of(first(3, exponential=BASE, rbf=NEAR)))
    assert [each.unfinished for each in open_.layout.cells] == [1, 1]
    assert "Not decided yet: rbf." in open_.notes


def test_intervals_and_p_values_are_those_of_the_rule():
    scores = first(3, exponential=BASE, rbf=NEAR)
    (ruled,) = tables(sweep_of(scores))
    built = sweep_of(scores)
    (fixed,) = tables(replace(built, grid={"tables": [TABLE], "axes": []}))
    (each,), (other,) = ruled.differences, fixed.differences
    assert each.estimate.value == pytest.approx(other.estimate.value)
    assert each.estimate.error == pytest.approx(other.estimate.error) and each.estimate.df == 2
    low, high = each.estimate.interval()
    assert low < other.estimate.interval()[0] and high > other.estimate.interval()[1]
    assert each.p > other.p
    assert ruled.groups[0].minimum_detectable_difference() is None
    assert ruled.layout.cells[0].half_width > fixed.layout.cells[0].half_width


def test_a_comparison_stays_at_its_last_look_when_others_go_on():
    early = first(3, exponential=BASE, rbf=FAR, linear=NEAR)
    later = early | {"exponential": BASE, "linear": NEAR}
    (before,), (after,) = (tables(sweep_of(scores)) for scores in (early, later))
    rbf = [next(difference for difference in built.differences if difference.at == (1, 0)) for built in (before, after)]
    assert rbf[0] == replace(rbf[1], p=rbf[0].p) and rbf[1].n == 3 and rbf[1].significant
    assert next(difference for difference in after.differences if difference.at == (2, 0)).n == 6


def test_a_decided_cell_is_worse_than_the_best_by_the_rule_too():
    (table,) = tables(sweep_of(first(3, exponential=BASE, rbf=FAR)))
    assert (1, 0) not in table.marks
    assert "over all looks" in " ".join(tables(sweep_of(first(3, exponential=BASE, rbf=NEAR)))[0].legend.values())


def test_the_caption_states_the_rule_and_the_audit_that_it_chose_the_seeds():
    scores = first(3, exponential=BASE, rbf=FAR, linear=NEAR)
    scores |= {"exponential": BASE[:4], "linear": NEAR[:4]}
    (table,) = tables(sweep_of(scores))
    text = " ".join(caption(table, best="bold"))
    assert "Each cell has 3 to 6 seeds" in text and "Jennison & Turnbull 1989" in text and "at most 5%" in text
    assert "The best of more seeds" not in text
    assert SEEDS_BY_RULE in {each.topic for each in table.audit} and "chosen by their rule" in text
    (best,) = tables(sweep_of(scores, table={**TABLE, "cell": "best-seed"}))
    assert "The best of more seeds is better by chance alone" in " ".join(best.notes)


def test_joined_sweeps_keep_a_rule_that_they_share_and_else_warn():
    each = replace(sweep_of(first(3, exponential=BASE, rbf=FAR)), name="one")
    two = replace(sweep_of(first(3, exponential=BASE, rbf=FAR)), id=2, name="two")
    fixed = replace(two, grid={"tables": [], "axes": []})

    def notes(*sweeps: SweepRecord) -> str:
        whole = joined(sweeps)
        (table,) = tables(replace(whole, grid={**whole.grid, "tables": [TABLE]}))
        assert [cell.unfinished for cell in table.layout.cells] == ([0, 0] if fixed not in sweeps else [3, 3])
        return " ".join(table.notes)

    assert "allow for all looks" in notes(each, two)
    warned = notes(each, fixed)
    assert "Seeds of one were added until something was decided" in warned and "do not allow for" in warned


def test_seeds_beyond_the_decision_change_no_comparison_but_the_means():
    """Another grid may have run them."""
    (few,) = tables(sweep_of(first(3, exponential=BASE, rbf=FAR)))
    (many,) = tables(sweep_of({"exponential": BASE, "rbf": FAR}))
    (each,), (other,) = few.differences, many.differences
    assert each == other and other.n == 3
    assert [cell.summary.n for cell in many.layout.cells] == [6, 6]


def test_a_comparison_that_cannot_be_made_counts_in_the_correction():
    """Otherwise what is decided would depend on which cells converge first."""
    built = sweep_of(first(3, exponential=BASE, rbf=[30.5, 30.6, 30.4], linear=NEAR))
    lost = [each._replace(state=RunState.DIVERGED, test_score=None) for each in built.runs if each.cell_id == "linear"]
    others = [each for each in built.runs if each.cell_id != "linear"]
    (table,) = tables(replace(built, runs=(*others, *lost)))
    (difference,) = table.differences
    assert difference.p == pytest.approx(2 * difference.estimate.p) and difference.p < 1
    assert {group.comparisons for group in table.groups} == {2}

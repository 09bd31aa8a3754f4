"""What goes below a table, word by word; its numbers against scipy."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sweeps import cell, run, seeded, sweep

from kdx.report.against import beside
from kdx.report.claims import answer
from kdx.report.listings import Listing, claim, listings
from kdx.report.papers import Claim, Contrast, Paper, PublishedCell, PublishedTable, Rule
from kdx.report.randomisation import Randomisation
from kdx.report.table import Table
from kdx.report.tables import tables
from kdx.store.records import CellRecord, RunRecord, RunState

RBF, EXP, POLY = [30.1, 31.4, 29.8, 30.9], [29.5, 30.2, 29.9, 30.0], [20.0, 22.0, 19.5, 20.5]
KERNELS = ("rbf", "exponential", "polynomial")


def made(*scores: list[float], task: str = "translation", runs: tuple[RunRecord, ...] = (), **asked: Any) -> Table:
    """A row for each list of scores."""
    used = list(zip(KERNELS, scores, strict=False))
    cells = [cell(kernel, task, kernel=kernel) for kernel, _ in used]
    runs = (*runs, *(one for kernel, its in used for one in seeded(kernel, *its)))
    return tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], **asked}]))[0]


def titles(table: Table, *, statistics: bool) -> list[str]:
    return [one.title for one in listings(table, statistics=statistics)]


def named(table: Table, title: str, *, statistics: bool = True) -> Listing:
    (found,) = (one for one in listings(table, statistics=statistics) if title.casefold() in one.title.casefold())
    return found


def column(listing: Listing, header: str) -> list[str]:
    return [row[listing.headers.index(header)] for row in listing.rows]


def against(table: Table, *cells: tuple[str, object], **rest: Any) -> Table:
    published = [
        PublishedCell.model_validate(
            {"where": {"kernel": kernel}, "metric": table.cells[0].metric.name, "value": value}
        )
        for kernel, value in cells
    ]
    head = {"name": "p", "title": "Paper", "source": "here", "protocol": "one run", "scale": {}, "claims": (), **rest}
    paper = Paper(**head, tables=(PublishedTable(table="Table 1", cells=tuple(published)),))
    task = "prediction" if table.cells[0].metric.name == "perplexity" else "translation"
    return replace(table, beside=beside(table, paper, [cell(kernel, task, kernel=kernel) for kernel in KERNELS]))


def test_what_belongs_to_a_table_is_what_it_declares_or_is_asked_for() -> None:
    cells, differences = "t: each cell over its seeds", "t: differences from the best of the column"
    assert titles(made(RBF, EXP), statistics=False) == []
    assert titles(made(RBF, EXP), statistics=True) == [cells, differences]
    declared = made(RBF, EXP, baseline={"kernel": "exponential"})
    assert titles(declared, statistics=False) == ["t: differences from exponential"]
    assert titles(against(declared, ("rbf", 1.0)), statistics=True) == [
        cells,
        "t: differences from exponential",
        "t: beside Paper",
    ]
    resampled = replace(made(RBF, EXP).differences[0], randomisation=Randomisation(1.0, 0.01, 1000, 40, "s"))
    assert titles(replace(made(RBF, EXP), differences=(resampled,)), statistics=False) == [differences]


def test_a_table_without_cells_has_nothing_below() -> None:
    (empty,) = tables(sweep([], []))
    assert titles(empty, statistics=True) == []


@given(st.integers(0, 3), st.integers(0, 3))
def test_every_row_has_a_word_for_every_header(seeds: int, others: int) -> None:
    lost = tuple(run("rbf", 10 + seed, state=RunState.DIVERGED, id=seed) for seed in range(others))
    table = made(RBF[:seeds], EXP[:others], runs=lost, baseline={"kernel": "rbf"}, margin={"bleu": 1.0})
    for one in listings(against(table, ("rbf", 1.0)), statistics=True):
        assert {len(row) for row in one.rows} <= {len(one.headers)} and 0 < one.names <= len(one.headers)


def test_a_cells_statistics() -> None:
    found = named(made(RBF, EXP[:3]), "Each cell")
    low, high = stats.t.interval(0.95, 3, np.mean(RBF), stats.sem(RBF))
    assert found.headers == ("kernel", "metric", "n", "mean", "sd", "95% interval", "best of 3")
    # By validation, which is the test score here, the best of three of four: (31.4 · 3 + 30.9) / 4.
    assert found.rows[0] == ("rbf", "bleu ↑", "4", "30.55", "0.73", f"{low:.2f} to {high:.2f}", "31.27")
    assert found.rows[1][-1] == "30.20"
    assert found.names == 2
    assert "expected score of the best-validation seed among 3" in found.notes[1]


def test_one_seed_has_no_spread() -> None:
    assert named(made([1.0], [2.0]), "Each cell").rows[0] == ("rbf", "bleu ↑", "1", "1.00", "–", "–", "1.00")


def test_without_any_score_there_is_no_best_of() -> None:
    lost = tuple(run("rbf", seed, state=RunState.DIVERGED, id=seed) for seed in range(2))
    found = named(made([], [], runs=lost), "Each cell")
    assert found.headers[-2:] == ("95% interval", "diverged")
    assert [row[2:] for row in found.rows] == [("0", "–", "–", "–", "2/2 (34% to 100%)"), ("0", "–", "–", "–", "–")]
    assert not any("best of" in note for note in found.notes)


def test_divergence_has_a_column_where_it_happened() -> None:
    lost = (run("rbf", 8, state=RunState.DIVERGED, id=1), run("rbf", 9, state=RunState.FAILED, id=2))
    found = named(made(RBF, EXP, runs=lost), "Each cell")
    low, high = stats.binomtest(1, 5).proportion_ci(method="wilson")
    assert column(found, "diverged") == [f"1/5 ({low:.0%} to {high:.0%})", "0/4 (0% to 49%)"]
    assert found.notes[-1] == "diverged: share of those that ended, with Wilson's interval."
    assert "diverged" not in named(made(RBF, EXP), "Each cell").headers


def test_differences_from_a_baseline() -> None:
    found = named(made(RBF, EXP, baseline={"kernel": "exponential"}), "Differences")
    test = stats.ttest_rel(RBF, EXP)
    interval = test.confidence_interval(0.95)
    sd = np.std(np.subtract(RBF, EXP), ddof=1) / np.sqrt(2)
    # Hedges' correction at 3 degrees of freedom, 1 − 3 / (4 · 3 − 1) as an approximation.
    effect = 0.65 / sd * (1 - 3 / 11)
    assert found.headers == ("kernel", "better by", "95% interval", "p", "effect", "n")
    ((kernel, gain, told, p, size, n),) = found.rows
    assert (kernel, gain, p, n) == ("rbf", "+0.65", f"{test.pvalue:.3f}", "4")
    assert told == f"{interval.low:.2f} to {interval.high:.2f}".replace("-", "−")
    assert float(size) == pytest.approx(effect, abs=0.02)
    assert found.notes[1].endswith(", Holm's correction over 1 difference.")


def test_differences_from_the_best_name_it_by_what_is_other() -> None:
    found = named(made(RBF, EXP, POLY), "t: differences from the best of the column")
    assert found.headers[:2] == ("kernel", "against")
    assert [row[:3] for row in found.rows] == [("exponential", "rbf", "−0.65"), ("polynomial", "rbf", "−10.05")]
    assert column(found, "p")[1] == "< 0.001"
    assert "Holm's correction over 3 pairs of cells, all that stand in one column." in found.notes[1]
    assert "95% interval: of each difference alone, not corrected." in found.notes


def test_a_perplexity_is_better_below() -> None:
    found = named(made(RBF, EXP, task="prediction", baseline={"kernel": "exponential"}), "Differences")
    assert column(found, "better by") == ["−0.65"]


def test_a_margin_tells_what_is_equal_within_it() -> None:
    def within(margin: float) -> list[str]:
        table = made(RBF, EXP, baseline={"kernel": "exponential"}, margin={"bleu": margin})
        return column(named(table, "Differences"), "within margin")

    p = stats.ttest_1samp(np.subtract(RBF, EXP), 1.5, alternative="less").pvalue
    assert 0.001 < p < 0.05 and within(1.5) == [f"1.50: yes (p {p:.3f})"]
    p = stats.ttest_1samp(np.subtract(RBF, EXP), 0.8, alternative="less").pvalue
    assert p > 0.05 and within(0.8) == [f"0.80: not shown (p {p:.3f})"]
    table = made(RBF, EXP, baseline={"kernel": "exponential"}, margin={"bleu": 1.0})
    assert "within margin: two one-sided tests (TOST) at 0.05, not corrected." in named(table, "Differences").notes


def test_what_cannot_be_told_is_a_dash() -> None:
    table = made([1.0], [2.0], baseline={"kernel": "rbf"}, margin={"bleu": 1.0})
    assert named(table, "Differences").rows == (("exponential", "–", "–", "–", "–", "1", "–"),)


def test_resampled_sentences_are_told_beside_seeds() -> None:
    table = made(RBF, EXP, POLY)
    first, second = table.differences
    table = replace(
        table, differences=(replace(first, randomisation=Randomisation(-1.25, 0.0004, 1000, 2000, "s")), second)
    )
    found = named(table, "Differences")
    assert column(found, "BLEU of the selected runs") == ["−1.25", "–"]
    assert column(found, "p over sentences") == ["< 0.001", "–"]
    assert "1,000 resamples of 2,000 test sentences" in found.notes[-1]


def test_published_values_stand_beside_ours() -> None:
    diverged = (run("polynomial", 0, state=RunState.DIVERGED, id=1),)
    table = made(RBF, EXP, [], runs=diverged)
    found = named(against(table, ("rbf", 34.26), ("exponential", 33.98), ("polynomial", "not converge")), "Beside")
    assert found.headers == ("kernel", "metric", "from", "published", "ours", "better by")
    assert found.rows == (
        ("rbf", "bleu ↑", "Table 1", "34.26", "31.40", "−2.86"),
        ("exponential", "bleu ↑", "Table 1", "33.98", "30.20", "−3.78"),
        ("polynomial", "bleu ↑", "Table 1", "not converge", "not converge", "–"),
    )
    assert found.notes == (
        "Published: here; one run.",
        "Ours: the best-validation seed's score; better by: positive where ours is better.",
        "Scale (translation): ours synthetic, d 128, 2+2 layers, 1000 steps, n = 1 or 4 seeds.",
        "Order of 3 cells (translation, synthetic, bleu): Kendall's τ = +1.00 (p = 0.333); what did not converge ranks "
        "last.",
    )


def test_a_published_value_that_is_in_doubt_has_a_note() -> None:
    table = against(made(RBF, EXP), ("rbf", 34.26), ("exponential", 33.98))
    assert table.beside
    doubted = tuple(replace(one, note="unverified.") for one in table.beside.pairs)
    found = named(replace(table, beside=replace(table.beside, pairs=doubted)), "Beside")
    assert "34.26 and 33.98: unverified." in found.notes


def test_published_scale_and_a_mean_are_told_as_such() -> None:
    table = against(made(RBF, cell="mean"), ("rbf", 30.0), scale={"translation": "IWSLT'14"}, protocol="", title="")
    found = named(table, "t: beside p")
    assert found.notes[:2] == (
        "Published: here.",
        "Ours: the mean over seeds; better by: positive where ours is better.",
    )
    assert found.notes[2].endswith("n = 4 seeds; published: IWSLT'14.")
    assert found.notes[3] == "Order of 1 cell (translation, synthetic, bleu): too few that differ to be ranked."
    assert found.rows[0][3:] == ("30.00", "30.55", "+0.55")


def test_a_cell_without_a_score_and_a_paper_without_such_cells() -> None:
    assert named(against(made([]), ("rbf", 30.0)), "Beside").rows == (("rbf", "bleu ↑", "Table 1", "30.00", "–", "–"),)
    none = named(against(made(RBF), ("linear", 30.0)), "Beside")
    assert none.rows == () and none.notes == ("Published: here; one run.", "It has no cell of this table.")


def contrast(expect: str = "better", **rest: Any) -> Contrast:
    sides = {"a": {"kernel": "rbf"}, "b": {"kernel": "exponential"}}
    return Contrast.model_validate({**sides, "expect": expect, **rest})


def answered(
    *parts: Contrast, runs: list[RunRecord] | None = None, cells: list[CellRecord] | None = None, any: bool = False
) -> Listing:
    cells = cells or [cell(kernel, kernel=kernel) for kernel in KERNELS[:2]]
    runs = [*seeded("rbf", *RBF), *seeded("exponential", *EXP)] if runs is None else runs
    return claim(answer(Claim("A1", "It works.", "Sec. 1", Rule(any, parts)), [sweep(cells, runs)]))


SETTING = "translation, synthetic, width 128, steps 1000"


def test_a_claim_is_told_with_its_verdict_and_what_it_rests_on() -> None:
    found = answered(contrast())
    interval = stats.ttest_rel(RBF, EXP).confidence_interval(0.95)
    assert found.title == "A1: cannot tell: It works."
    assert found.headers == ("a over b", "expected", "where", "a better by", "interval", "n", "verdict", "more seeds")
    (row,) = found.rows
    assert row[:4] == ("rbf over exponential", "better", SETTING, "+0.65")
    assert row[4] == f"{interval.low:.2f} to {interval.high:.2f}".replace("-", "−")
    assert row[5:7] == ("4", "cannot tell") and int(row[7]) > 0
    assert found.notes == (
        "Source: Sec. 1.",
        "Differences of means, paired by seed, residual variance pooled over all cells at hand of the same setting; "
        "95% intervals; more seeds: for a decision with probability 0.8 if the difference stays.",
    )


@pytest.mark.parametrize(
    ("its", "told"),
    [
        (contrast(), "better"),
        (contrast(margin=0.25), "better from 0.25"),
        (contrast("no-worse", margin=0.3), "no-worse than 0.3"),
        (contrast("equivalent", margin=2), "equivalent within 2"),
    ],
)
def test_what_is_expected_in_words(its: Contrast, told: str) -> None:
    assert column(answered(its), "expected") == [told]


def test_what_is_told_has_no_more_seeds_and_what_no_seeds_tell_says_so() -> None:
    assert column(answered(contrast("equivalent", margin=5)), "more seeds") == [""]
    even = [*seeded("rbf", 1.0, 3.0, 2.0), *seeded("exponential", 2.0, 2.0, 2.0)]
    assert column(answered(contrast(), runs=even), "more seeds") == ["none in sight"]


def test_a_claim_with_several_chances_tells_its_wider_interval() -> None:
    assert "; 97.5% intervals;" in answered(contrast(), contrast("no-worse", margin=1), any=True).notes[1]
    assert "; 98.33% intervals;" in answered(*[contrast("no-worse", margin=x) for x in (1, 2, 3)], any=True).notes[1]


def test_divergence_is_told_as_rates() -> None:
    runs = [*seeded("rbf", 1.0, 2.0, 3.0), *(run("exponential", s, state=RunState.DIVERGED, id=s) for s in range(3))]
    found = answered(contrast(), runs=runs)
    assert found.rows[0][3:] == ("–", "–", "0", "holds", "")
    assert found.notes[1:] == (
        "rbf over exponential: 0/3 against 3/3 runs diverged; difference of the rates 21% to 100%.",
    )


def test_too_few_seeds_are_told() -> None:
    found = answered(contrast(), runs=[*seeded("rbf", 1.0), *seeded("exponential", 2.0)])
    assert found.rows[0][3:] == ("–", "–", "1", "cannot tell", "1")
    assert found.notes[1:] == ("rbf over exponential: too few seeds in common.",)


def test_contrasts_without_cells_are_named_in_one_note() -> None:
    missing = [contrast(where={"norm": "pre"}), contrast(where={"task": "prediction"})]
    found = answered(*missing)
    assert found.rows == ()
    assert found.notes == (
        "Source: Sec. 1.",
        "No cells here for rbf over exponential (pre); rbf over exponential (prediction).",
    )


def test_where_tells_the_setting_and_what_the_contrast_asks_for() -> None:
    assert column(answered(contrast(where={"norm": "post", "task": "translation"})), "where") == [f"{SETTING}, post"]


def test_what_a_contrast_is_averaged_over_and_what_differs_besides_is_told() -> None:
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    runs = [one for each in cells for one in seeded(each.id, 1.0, 2.0)]
    assert "rbf over exponential: averaged over norm." in answered(contrast(), cells=cells, runs=runs).notes
    by_position = contrast(a={"position": "product"}, b={"position": "lookup"})
    cells = [cell(position, position=[position]) for position in ("product", "lookup")]
    runs = [*seeded("product", *RBF), *seeded("lookup", *EXP)]
    found = answered(by_position, cells=cells, runs=runs)
    assert "product over lookup: the sides differ in placement, too." in found.notes


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ({"kernel": "rbf", "norm": "pre"}, {"kernel": "linear", "norm": "pre"}, "rbf over linear"),
        # What a position scheme brings with it needs no words.
        (
            {"position": "product", "symmetry": "symmetric", "value": "without-position"},
            {"position": "direct-sum", "symmetry": "asymmetric", "value": "with-position", "inject": "input"},
            "product symmetric over direct-sum asymmetric",
        ),
        # But where both sides do not have it, the words that tell them apart stay.
        (
            {"position": "lookup", "value": "table"},
            {"value": "without-position"},
            "lookup table over without-position",
        ),
        ({"clip": 2}, {"clip": 16}, "clip 2 over clip 16"),
        ({"memory": 0, "norm": "pre"}, {"memory": 8}, "memory 0 pre over memory 8"),
    ],
)
def test_a_contrast_is_named_by_what_tells_its_sides_apart(a: dict[str, Any], b: dict[str, Any], told: str) -> None:
    assert f"No cells here for {told}." in answered(contrast(a=a, b=b)).notes

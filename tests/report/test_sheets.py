"""What goes below a table, word by word; its numbers against scipy."""

import re
from dataclasses import replace
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
import trials
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sweeps import cell, run, seeded, sweep

from kdx.grid.tuning import Sampler
from kdx.report.papers.paper_file import Claim, Contrast, Paper, PublishedCell, PublishedTable, Rule
from kdx.report.papers.published_comparison import compare_with_published
from kdx.report.papers.verdicts import Answer, answers
from kdx.report.sheet import Sheet
from kdx.report.sheets.claims import claim, not_tested, summary
from kdx.report.sheets.listings import listings, tuned_settings
from kdx.report.statistics.metric import Metric
from kdx.report.table.bleu_randomisation import Randomisation
from kdx.report.tables import Table, tables
from kdx.report.writers.html.figures import figures
from kdx.report.writers.json import to_json
from kdx.store.records import CellRecord, RunRecord, RunState
from kdx.tasks.definition import Measure, Per, Scale
from kdx.vocabulary import Direction

RBF, EXP, POLY = [30.1, 31.4, 29.8, 30.9], [29.5, 30.2, 29.9, 30.0], [20.0, 22.0, 19.5, 20.5]
KERNELS = ("rbf", "exponential", "polynomial")


def table_of(
    *scores: list[float], task: str = "translation", runs: tuple[RunRecord, ...] = (), **options: Any
) -> Table:
    """A row for each list of scores."""
    used = list(zip(KERNELS, scores, strict=False))
    cells = [cell(kernel, task, kernel=kernel) for kernel, _ in used]
    runs = (*runs, *(run for kernel, values in used for run in seeded(kernel, *values)))
    return tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], **options}]))[0]


def titles(table: Table, *, statistics: bool) -> list[str]:
    return [sheet.title for sheet in listings(table, statistics=statistics)]


def named(table: Table, title: str, *, statistics: bool = True) -> Sheet:
    (named,) = (sheet for sheet in listings(table, statistics=statistics) if title.casefold() in sheet.title.casefold())
    return named


def column(listing: Sheet, header: str) -> list[str]:
    return [row[listing.headers.index(header)] for row in listing.rows]


def against(table: Table, *cells: tuple[str, object], **rest: Any) -> Table:
    published = [
        PublishedCell.model_validate(
            {"where": {"kernel": kernel}, "metric": table.layout.cells[0].metric.name, "value": value}
        )
        for kernel, value in cells
    ]
    head = {"name": "p", "title": "Paper", "source": "here", "protocol": "one run", "scale": {}, "claims": (), **rest}
    head.setdefault("corpora", {"translation": "synthetic", "prediction": "synthetic"})
    paper = Paper(**head, tables=(PublishedTable(table="Table 1", cells=tuple(published)),))
    return replace(table, published=compare_with_published(table.layout.places, table.layout.records, paper))


def test_what_belongs_to_a_table_is_what_it_declares_or_is_asked_for() -> None:
    cells = "t: each cell over its seeds, metric BLEU ↑, n = 4"
    differences = "t: differences from the best of the column"
    assert titles(table_of(RBF, EXP), statistics=False) == []
    assert titles(table_of(RBF, EXP), statistics=True) == [cells, differences]
    declared = table_of(RBF, EXP, baseline={"kernel": "exponential"})
    assert titles(declared, statistics=False) == ["t: differences from exponential"]
    assert titles(against(declared, ("rbf", 1.0)), statistics=True) == [
        cells,
        "t: differences from exponential",
        "t: beside Paper",
    ]
    table = table_of(RBF, EXP)
    over = {table.differences[0].at: Randomisation(1.0, 0.01, 1000, 40, "s")}
    assert titles(replace(table, randomisations=over), statistics=False) == [differences]


def test_a_table_without_cells_has_nothing_below() -> None:
    (empty,) = tables(sweep([], []))
    assert titles(empty, statistics=True) == []


@given(st.integers(0, 3), st.integers(0, 3))
def test_every_row_has_a_word_for_every_header(seeds: int, others: int) -> None:
    lost = tuple(run("rbf", 10 + seed, state=RunState.DIVERGED, id=seed) for seed in range(others))
    table = table_of(RBF[:seeds], EXP[:others], runs=lost, baseline={"kernel": "rbf"}, margin={"bleu": 1.0})
    for sheet in listings(against(table, ("rbf", 1.0)), statistics=True):
        assert {len(row) for row in sheet.rows} <= {len(sheet.headers)} and 0 < sheet.names <= len(sheet.headers)


def test_a_cells_statistics() -> None:
    sheet = named(table_of(RBF, EXP[:3]), "Each cell")
    low, high = stats.t.interval(0.95, 3, np.mean(RBF), stats.sem(RBF))
    # Of three there is an expected best of two; of all three it would be the selected score again.
    assert sheet.title == "t: each cell over its seeds, metric BLEU ↑"
    assert sheet.headers == ("kernel", "n", "mean", "sd", "95% interval", "best of 2")
    # By validation, which is the test score here, the best two of four: (31.4 · 3 + 30.9 · 2 + 30.1) / 6.
    assert sheet.rows[0] == ("rbf", "4", "30.55", "0.73", f"{low:.2f} to {high:.2f}", "31.02")
    assert sheet.rows[1][-1] == f"{(30.2 * 2 + 29.9) / 3:.2f}"
    assert sheet.names == 1
    assert "expected score of the best-validation seed among 2" in sheet.notes[1]


def test_one_seed_has_no_spread_and_no_expected_best_of_fewer() -> None:
    sheet = named(table_of([1.0], [2.0]), "Each cell")
    assert sheet.title.endswith(", n = 1") and sheet.rows[0] == ("rbf", "1.00", "–", "–")
    assert not any("best of" in note for note in sheet.notes)


def test_without_any_score_there_is_no_best_of() -> None:
    lost = tuple(run("rbf", seed, state=RunState.DIVERGED, id=seed) for seed in range(2))
    sheet = named(table_of([], [], runs=lost), "Each cell")
    assert sheet.headers[-2:] == ("95% interval", "diverged")
    assert sheet.title.endswith(", n = 0"), "what nothing is known of keeps its columns"
    assert [row[1:] for row in sheet.rows] == [("–", "–", "–", "2/2 (34% to 100%)"), ("–", "–", "–", "–")]
    assert not any("best of" in note for note in sheet.notes)


def test_divergence_has_a_column_where_it_happened() -> None:
    lost = (run("rbf", 8, state=RunState.DIVERGED, id=1), run("rbf", 9, state=RunState.FAILED, id=2))
    sheet = named(table_of(RBF, EXP, runs=lost), "Each cell")
    low, high = stats.binomtest(1, 5).proportion_ci(method="wilson")
    assert column(sheet, "diverged") == [f"1/5 ({low:.0%} to {high:.0%})", "0/4 (0% to 49%)"]
    assert sheet.notes[-1] == "diverged: share of those that ended, with Wilson's interval."
    assert "diverged" not in named(table_of(RBF, EXP), "Each cell").headers


def welch(a: list[float], b: list[float]) -> tuple[float, float, float]:
    """Difference of the means, its standard error by the spread of these two alone, and the degrees of freedom."""
    variances = np.array([np.var(a, ddof=1) / len(a), np.var(b, ddof=1) / len(b)])
    df = min((np.array([len(a), len(b)]) - 1) * variances.sum() / variances)
    return np.mean(a) - np.mean(b), sqrt(variances.sum()), df


def test_differences_from_a_baseline() -> None:
    sheet = named(table_of(RBF, EXP, baseline={"kernel": "exponential"}), "Differences")
    value, error, df = welch(RBF, EXP)
    low, high = stats.t(df, value, error).interval(0.95)
    # Hedges' correction, 1 − 3 / (4 · df − 1) as an approximation.
    effect = value / sqrt((np.var(RBF, ddof=1) + np.var(EXP, ddof=1)) / 2) * (1 - 3 / (4 * 6 - 1))
    assert sheet.headers == ("kernel", "mean", "better by", "unit", "95% interval", "p", "corrected p", "effect", "n")
    ((kernel, mean, gain, unit, expected, p, corrected, size, n),) = sheet.rows
    assert mean == f"{np.mean(RBF):.2f}"
    assert (kernel, gain, unit, n) == ("rbf", "+0.65", "BLEU", "4") and p == f"{2 * stats.t.sf(value / error, df):.3f}"
    assert corrected == p, "of one difference"
    # A true minus, and the sign of a difference.
    assert expected == f"{low:+.2f} to {high:+.2f}".replace("-", "−")
    assert float(size) == pytest.approx(effect, abs=0.02)
    assert sheet.notes == (
        "better by: difference of the means, positive where the cell is better than the one it stands against.",
        "95% interval, p: of each difference alone, two-sided, not corrected; t from the spread of these two cells "
        "alone, with cautious degrees of freedom. Intervals and marks are over seeds alone.",
        "corrected p: two-sided, Holm's correction over 1 difference.",
        "effect: in standard deviations over seeds (Hedges' g).",
    )


def test_differences_from_the_best_name_it_by_what_is_other() -> None:
    sheet = named(table_of(RBF, EXP, POLY), "t: differences from the best of the column")
    assert sheet.title.endswith("column, against rbf, unit BLEU, n = 4"), "said once"
    assert [row[:2] for row in sheet.rows] == [("exponential", "−0.65"), ("polynomial", "−10.05")]
    assert column(sheet, "p")[1] == column(sheet, "corrected p")[1] == "< 0.001"
    for interval, p in zip(column(sheet, "95% interval"), column(sheet, "p"), strict=True):
        assert ("+" in interval) is (p[0] == "0" and float(p) >= 0.05), "the two never contradict each other"
    assert sheet.notes[2].endswith("times the number of comparisons in its column; the marks rest on it.")
    alone = named(table_of(RBF, EXP), "t: differences from the best of the column")
    two_sided, one_sided = (float(column(alone, name)[0]) for name in ("p", "corrected p"))
    assert two_sided == pytest.approx(2 * one_sided, abs=0.0015)


def test_perplexities_differ_in_nats_beside_which_their_ratio_stands() -> None:
    sheet = named(table_of(RBF, EXP, task="prediction", baseline={"kernel": "exponential"}), "Differences")
    # Less is better.
    value, error, df = welch([*np.log(EXP)], [*np.log(RBF)])
    low, high = stats.t(df, value, error).interval(0.95)
    assert column(sheet, "better by") == [f"{value:+.3f}".replace("-", "−")]
    assert column(sheet, "95% interval") == [f"{low:+.3f} to {high:+.3f}".replace("-", "−")]
    assert column(sheet, "ratio") == [f"{exp(-value):.3f} ({exp(-high):.3f} to {exp(-low):.3f})"]
    assert sheet.notes[0].endswith("; of perplexities in nats, with the ratio of the two.")


def test_a_table_of_two_metrics_has_ratios_of_perplexities_alone() -> None:
    cells = [cell(f"{task}-{kernel}", task, kernel=kernel) for task in TASKS for kernel in ("rbf", "exponential")]
    runs = [run for each in cells for run in seeded(each.id, *(RBF if "rbf" in each.id else EXP))]
    spec = {"name": "t", "rows": ["kernel"], "columns": ["task"], "baseline": {"kernel": "exponential"}}
    (table,) = tables(sweep(cells, runs, tables=[spec]))
    bleu, perplexity = column(named(table, "Differences"), "ratio")
    assert bleu == "–" and perplexity.startswith("1.0")
    assert column(named(table, "Differences"), "unit") == ["BLEU", "nats"]
    assert column(named(table, "Each cell"), "metric") == ["BLEU ↑"] * 2 + ["perplexity ↓"] * 2, "as it is compared"


@pytest.mark.parametrize(
    ("name", "scale", "unit"),
    [
        ("bleu", Scale.PERCENT, "BLEU"),
        ("chrf", Scale.PERCENT, "chrF"),
        ("accuracy", Scale.PERCENT, "points"),
        ("accuracy/pairs=5-8", Scale.PERCENT, "points"),
        ("perplexity", Scale.PERPLEXITY, "nats"),
        ("loss", Scale.NATS, "nats"),
        ("bits_per_byte", Scale.BITS, "bits"),
        ("valid/mine", Scale.OTHER, "mine"),
    ],
)
def test_the_unit_of_a_difference_is_what_a_reader_knows(name: str, scale: Scale, unit: str) -> None:
    assert Metric(name, Measure(Direction.MAX, scale, Per.TEXT)).scale_in_words == unit


def test_a_margin_tells_what_is_equal_within_it() -> None:
    def within(margin: float | str, task: str = "translation", metric: str = "bleu") -> list[str]:
        table = table_of(RBF, EXP, task=task, baseline={"kernel": "exponential"}, margin={metric: margin})
        return column(named(table, "Differences"), "within margin")

    def p(margin: float) -> float:
        value, error, df = welch(RBF, EXP)
        return float(stats.t.sf((margin - value) / error, df))

    assert 0.001 < p(1.8) < 0.05 and within(1.8) == [f"1.80: yes (p {p(1.8):.3f})"]
    assert p(0.8) > 0.05 and within(0.8) == [f"0.80: not shown (p {p(0.8):.3f})"]
    share = 0.05 * np.mean(EXP)
    assert within("5%") == [f"{share:.2f}: {'yes' if p(share) < 0.05 else 'not shown'} (p {p(share):.3f})"]
    assert within("5%", "prediction", "perplexity")[0].startswith(f"{np.log(1.05):.3f}: ")
    table = table_of(RBF, EXP, baseline={"kernel": "exponential"}, margin={"bleu": 1.0})
    assert "within margin: two one-sided tests (TOST) at 0.05, not corrected." in named(table, "Differences").notes


def test_what_cannot_be_told_is_a_dash() -> None:
    table = table_of([1.0], [2.0], baseline={"kernel": "rbf"}, margin={"bleu": 1.0})
    assert named(table, "Differences").rows == (("exponential", "2.00", "–", "BLEU", "–", "–", "–", "–", "1", "–"),)


def test_resampled_sentences_are_told_beside_seeds() -> None:
    table = table_of(RBF, EXP, POLY)
    first, _ = table.differences
    table = replace(table, randomisations={first.at: Randomisation(-1.25, 0.0004, 1000, 2000, "s")})
    sheet = named(table, "Differences")
    assert column(sheet, "BLEU of the selected runs") == ["−1.25", "–"]
    assert column(sheet, "p over sentences") == ["< 0.001", "–"]
    assert "approximate randomisation of BLEU, 1,000 exchanges of translations of 2,000 test" in sheet.notes[-1]
    assert "it says nothing about other seeds" in sheet.notes[-1]


def test_published_values_stand_beside_ours() -> None:
    diverged = (run("polynomial", 0, state=RunState.DIVERGED, id=1),)
    table = table_of(RBF, EXP, [], runs=diverged)
    sheet = named(against(table, ("rbf", 34.26), ("exponential", 33.98), ("polynomial", "not converge")), "Beside")
    assert sheet.title == "t: beside Paper, metric BLEU ↑, from Table 1"
    assert sheet.headers == ("kernel", "published", "ours", "better by")
    assert sheet.rows == (
        ("rbf", "34.26", "31.40", "−2.86"),
        ("exponential", "33.98", "30.20", "−3.78"),
        ("polynomial", "did not converge", "diverged", "–"),
    )
    assert sheet.notes == (
        "Published: here; one run.",
        "Ours: the best-validation seed's score; better by: positive where ours is better.",
        "Scale (translation): ours synthetic, d 128, 2+2 layers, 1000 steps, n = 1 or 4 seeds.",
        "Order of 3 cells (translation, synthetic, bleu): Kendall's τ = +1.00 (p = 0.333); what diverged ranks last.",
    )


def test_published_values_of_another_corpus_have_places_and_no_difference() -> None:
    table = against(table_of(RBF, EXP), ("rbf", 34.26), ("exponential", 33.98), corpora={"translation": "iwslt14"})
    sheet = named(table, "Beside")
    assert sheet.headers[1:] == ("published", "ours", "place, published", "place, ours")
    assert [row[3:] for row in sheet.rows] == [("1", "1"), ("2", "2")]
    assert "numbers of another corpus compare by their order" in sheet.notes[2]


def test_a_published_value_that_is_in_doubt_has_a_note() -> None:
    table = against(table_of(RBF, EXP), ("rbf", 34.26), ("exponential", 33.98))
    assert table.published
    doubted = tuple(replace(pair, note="unverified.") for pair in table.published.pairs)
    sheet = named(replace(table, published=replace(table.published, pairs=doubted)), "Beside")
    assert "34.26 and 33.98: unverified." in sheet.notes


def test_published_scale_and_a_mean_are_told_as_such() -> None:
    table = against(table_of(RBF, cell="mean"), ("rbf", 30.0), scale={"translation": "IWSLT'14"}, protocol="", title="")
    sheet = named(table, "t: beside p")
    assert sheet.notes[:2] == (
        "Published: here.",
        "Ours: the mean over seeds; better by: positive where ours is better.",
    )
    assert sheet.notes[2].endswith("n = 4 seeds; published: IWSLT'14.")
    assert sheet.notes[3] == "Order of 1 cell (translation, synthetic, bleu): too few that differ to be ranked."
    assert sheet.rows[0][3:] == ("30.00", "30.55", "+0.55")


def test_a_cell_without_a_score_and_a_paper_without_such_cells() -> None:
    assert named(against(table_of([]), ("rbf", 30.0)), "Beside").rows == (
        ("rbf", "BLEU ↑", "Table 1", "30.00", "–", "–"),
    )
    none = named(against(table_of(RBF), ("linear", 30.0)), "Beside")
    assert none.rows == () and none.notes == ("Published: here; one run.", "It has no cell of this table.")


def contrast(expect: str = "better", **rest: Any) -> Contrast:
    sides = {"a": {"kernel": "rbf"}, "b": {"kernel": "exponential"}}
    return Contrast.model_validate({**sides, "expect": expect, **rest})


def answer(
    *parts: Contrast, runs: list[RunRecord] | None = None, cells: list[CellRecord] | None = None, any: bool = False
) -> Answer:
    cells = cells or [cell(kernel, kernel=kernel) for kernel in KERNELS[:2]]
    runs = [*seeded("rbf", *RBF), *seeded("exponential", *EXP)] if runs is None else runs
    rule = Rule(**{"any" if any else "all": parts})
    return answers([Claim(id="A1", statement="It works.", source="Sec. 1", holds=rule)], [sweep(cells, runs)])[0]


def all_answered(*parts: Contrast, **records: Any) -> list[Sheet]:
    return list(claim(answer(*parts, **records)))


def answered(*parts: Contrast, **records: Any) -> Sheet:
    """In the one setting there is."""
    (sheet,) = all_answered(*parts, **records)
    return sheet


SETTING = "translation, synthetic, width 128, steps 1000"
TASKS = ("translation", "prediction")


def test_a_claim_is_told_with_its_verdict_its_setting_and_what_it_rests_on() -> None:
    sheet = answered(contrast())
    value, error, df = welch(RBF, EXP)
    low, high = stats.t(df, value, error).interval(0.9)
    assert sheet.title == f"A1: cannot tell ({SETTING}): It works."
    assert sheet.headers == ("a over b", "expected", "a better by (BLEU)", "90% interval", "n", "verdict", "more seeds")
    (row,) = sheet.rows
    assert row[:3] == ("rbf over exponential", "better", "+0.65")
    assert row[3] == f"{low:+.2f} to {high:+.2f}".replace("-", "−")
    assert row[4:6] == ("4", "cannot tell") and int(row[6]) > 0
    assert sheet.names == 2
    assert sheet.notes == (
        "Source: Sec. 1.",
        "Scores: test/bleu; intervals: over seeds alone.",
    )


def test_the_summary_has_a_verdict_for_each_claim_and_setting_by_as_few_words_as_tell_settings_apart() -> None:
    cells = [cell(f"{task}{kernel}", task, kernel=kernel) for task in TASKS for kernel in KERNELS[:2]]
    runs = [
        *seeded("translationrbf", 30.0, 31.0, 32.0),
        *seeded("translationexponential", 10.0, 11.0, 12.0),
        *seeded("predictionrbf", 30.0, 31.0, 32.0),
        *seeded("predictionexponential", 10.0, 11.0, 12.0),
    ]
    (sheet,) = summary([answer(contrast(), cells=cells, runs=runs)])
    assert sheet.headers == ("claim", "translation", "prediction")
    assert sheet.rows == (("A1", "holds", "does not hold"),)
    assert "share its 5%" in sheet.notes[0] and sheet.notes[1].startswith("Seeds added after a look ")


def test_the_summary_marks_what_is_confounded_and_explains_more_seeds() -> None:
    cells = [cell(position, position=[position]) for position in ("product", "lookup")]
    by_position = contrast(a={"position": "product"}, b={"position": "lookup"})
    runs = [*seeded("product", *RBF), *seeded("lookup", *POLY)]
    (sheet,) = summary([answer(by_position, cells=cells, runs=runs)])
    assert sheet.rows == (("A1", "holds, confounded"),) and sheet.notes[0].startswith("confounded: ")
    (undecided,) = summary([answer(contrast())])
    assert re.fullmatch(r"cannot tell \([\d,]+ more seeds\)", str(undecided.rows[0][1]))
    assert undecided.notes[-1].startswith("more seeds: ")
    assert list(summary([answer(contrast(), runs=[], cells=[cell("a", kernel="elu")])])) == []


def test_a_claim_that_several_contrasts_can_make_hold_says_what_it_needs() -> None:
    assert "Needed: rbf over exponential or rbf over exponential." in answered(contrast(), contrast(), any=True).notes
    assert not any(note.startswith("Needed") for note in answered(contrast(), contrast()).notes)


def test_each_setting_has_a_listing_of_its_own_and_the_source_stands_once() -> None:
    cells, runs = [], []
    for steps, scores in ((1000, ([30.0, 31.0, 32.0], [10.0, 11.0, 12.0])), (10, ([1.0], [2.0]))):
        for kernel, values in zip(KERNELS, scores, strict=False):
            cells.append(cell(f"{kernel}{steps}", kernel=kernel, training={"steps": steps}))
            runs += seeded(cells[-1].id, *values)
    first, second = all_answered(contrast(), cells=cells, runs=runs)
    assert first.title == f"A1: holds ({SETTING}): It works."
    assert second.title == "A1: cannot tell (translation, synthetic, width 128, steps 10): It works."
    assert first.key != second.key
    assert [sheet.notes.count("Source: Sec. 1.") for sheet in (first, second)] == [1, 0]


def test_a_claim_that_is_confounded_says_so_in_its_title_and_a_note() -> None:
    by_position = contrast(a={"position": "product"}, b={"position": "lookup"})
    cells = [cell(position, position=[position]) for position in ("product", "lookup")]
    runs = [*seeded("product", *RBF), *seeded("lookup", *POLY)]
    sheet = answered(by_position, cells=cells, runs=runs)
    assert sheet.title == f"A1: holds, confounded by placement ({SETTING}): It works."
    assert "product over lookup: the sides differ also in placement." in sheet.notes


def test_a_claim_about_perplexities_is_told_in_nats() -> None:
    cells = [cell(kernel, "prediction", kernel=kernel) for kernel in KERNELS[:2]]
    sheet = answered(contrast(), cells=cells)
    assert sheet.rows[0][2] == f"{np.mean(np.log(EXP)) - np.mean(np.log(RBF)):+.3f}".replace("-", "−")
    (verdicts,) = summary([answer(contrast(), cells=cells)])
    assert verdicts.notes[0].startswith("a better by: difference of the means, of perplexities in nats; t from")


@pytest.mark.parametrize(
    ("expectation", "expected"),
    [
        (contrast(), "better"),
        (contrast(margin=0.25), "better by at least 0.25"),
        (contrast("no-worse", margin=0.3), "worse by at most 0.3"),
        (contrast("equivalent", margin=2), "equivalent within 2"),
        (contrast("equivalent", margin="1%"), "equivalent within 1%"),
    ],
)
def test_what_is_expected_in_words(expectation: Contrast, expected: str) -> None:
    assert column(answered(expectation), "expected") == [expected]


def test_what_is_told_has_no_more_seeds_and_what_no_seeds_tell_says_so() -> None:
    assert "more seeds" not in answered(contrast("equivalent", margin=5)).headers
    even = [*seeded("rbf", 1.0, 3.0, 2.0), *seeded("exponential", 2.0, 2.0, 2.0)]
    assert column(answered(contrast(), runs=even), "more seeds") == ["none in sight"]


def test_the_interval_is_the_one_that_decides() -> None:
    """Of two parts each of which may make a claim hold, each has half of its 5%, at one end of a 95% interval."""
    wide, far = contrast("no-worse", margin=1.2), contrast("no-worse", margin=3)
    assert answered(wide).headers[3] == "90% interval"
    assert answered(wide, far, any=True).headers[3] == "95% interval"
    either = answered(wide, contrast("better", margin=0.7), any=False)
    assert either.headers[3] == "interval" and [text[-5:] for text in column(either, "interval")] == ["(90%)", "(95%)"]
    value, error, df = welch(RBF, EXP)
    low, _ = stats.t(df, value, error).interval(0.95)
    (row, _) = answered(wide, far, any=True).rows
    assert row[3].startswith(f"{low:+.2f} to ".replace("-", "−")) and row[5] == "holds" and low > -1.2


def test_divergence_is_told_as_rates() -> None:
    runs = [*seeded("rbf", 1.0, 2.0, 3.0), *(run("exponential", s, state=RunState.DIVERGED, id=s) for s in range(3))]
    sheet = answered(contrast(), runs=runs)
    assert sheet.rows[0][2:] == ("–", "–", "0–3", "holds")
    assert sheet.notes[1:] == (
        "rbf over exponential: 0/3 against 3/3 runs diverged; difference of the rates 21% to 100%.",
    )


def test_a_single_seed_is_told() -> None:
    sheet = answered(contrast(), runs=[*seeded("rbf", 1.0), *seeded("exponential", 2.0)])
    assert sheet.rows[0][2:] == ("–", "–", "1", "cannot tell", "1")
    assert sheet.notes[1:] == ("rbf over exponential: a cell has a single seed.",)


def test_contrasts_without_cells_are_named_in_one_note() -> None:
    missing = [contrast(where={"norm": "pre"}), contrast(where={"task": "prediction"})]
    claimed = Claim(id="A1", statement="It works.", source="Sec. 1", holds=Rule(all=tuple(missing)))
    cells = [cell(kernel, kernel=kernel) for kernel in KERNELS[:2]]
    (answer,) = answers([claimed], [sweep(cells, [*seeded("rbf", *RBF), *seeded("exponential", *EXP)])])
    assert not list(claim(answer))
    (sheet,) = not_tested([answer])
    assert sheet.rows == (("A1", "It works.", "–"),)
    assert sheet.notes == ("A1: No cells here for rbf over exponential (pre); rbf over exponential (prediction).",)
    (answer,) = answers([claimed.model_copy(update={"grids": ("mine/table's",)})], [])
    (sheet,) = not_tested([answer])
    assert (sheet.rows, sheet.notes) == ((("A1", "It works.", 'kdx sweep "mine/table\'s"'),), ())


def test_a_contrast_tells_what_it_asks_for_where_others_ask_for_something_else() -> None:
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for k in KERNELS[:2] for n in ("pre", "post")]
    runs = [run for each in cells for run in seeded(each.id, 1.0, 2.0)]
    contrasts = [contrast(where={"norm": norm, "task": "translation"}) for norm in ("pre", "post")]
    assert column(answered(*contrasts, cells=cells, runs=runs), "a over b") == [
        "rbf over exponential (pre)",
        "rbf over exponential (post)",
    ]
    assert column(answered(contrasts[0], cells=cells, runs=runs), "a over b") == ["rbf over exponential"]


def test_what_a_contrast_is_averaged_over_is_told() -> None:
    cells = [cell(f"{k}-{n}", kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    runs = [run for each in cells for run in seeded(each.id, 1.0, 2.0)]
    assert "rbf over exponential: averaged over norm." in answered(contrast(), cells=cells, runs=runs).notes


@pytest.mark.parametrize(
    ("a", "b", "expected"),
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
        ({"clip": 2, "value": "table"}, {"clip": 16}, "clip 2 table over clip 16"),
        ({"position": "lookup", "clip": 2}, {"position": "product", "clip": "none"}, "lookup over product"),
        (
            {"kernel": "rbf", "temperature": 2.0},
            {"kernel": "exponential", "temperature": 0.5},
            "rbf temperature 2.0 over exponential temperature 0.5",
        ),
        ({"memory": 0, "norm": "pre"}, {"memory": 8}, "memory 0 pre over memory 8"),
    ],
)
def test_a_contrast_is_named_by_what_tells_its_sides_apart(a: dict[str, Any], b: dict[str, Any], expected: str) -> None:
    (sheet,) = not_tested(answers([Claim(id="A1", statement="It works.", holds=Rule(all=(contrast(a=a, b=b),)))], []))
    assert sheet.notes == (f"A1: No cells here for {expected}.",)


def test_winners_settings_stand_beside_their_rows_with_what_is_not_found_yet():
    sheet = tuned_settings(trials.table(trials.search("rbf"), trials.search("exponential")))
    assert sheet.headers == ("kernel", trials.RATE, trials.DROPOUT, "valid/bleu ↑", "trials")
    assert sheet.rows[0] == ("rbf", "0.0095^", "0", "20.00", "3")
    edge = "^ rbf, exponential: training.learning_rate 0.0095 at the upper edge: not found yet, try 0.01 to 0.1"
    assert f"{edge} (of 0.0001 to 0.01, logarithmic)." in sheet.notes
    assert any(note.startswith("Expected best of half as many trials") and "rbf 17.2" in note for note in sheet.notes)


def test_what_a_search_does_to_intervals_is_said_with_the_table():
    (note,) = [
        note for note in trials.table(trials.search("rbf"), trials.search("exponential")).notes if "trials" in note
    ]
    assert "Another search would find other settings, which no interval allows for" in note


def test_what_draws_depend_on_one_another_has_no_expected_best():
    sheet = tuned_settings(trials.table(trials.search("rbf", sampler=Sampler.TPE)))
    reason = "trials of the tpe sampler are no independent draws"
    assert f"The expected best of fewer trials is left out: {reason}." in sheet.notes


def test_a_report_lists_settings_where_a_search_found_them_and_only_there():
    searched, plain = trials.table(trials.search("rbf")), trials.table(plain=("rbf",))
    assert [sheet.key for sheet in listings(searched, statistics=False)] == [("t", "searches")]
    assert [*listings(plain, statistics=False)] == []


def test_json_has_every_trial_and_the_page_draws_them():
    searched = trials.table(trials.search("rbf"))
    (plain,) = to_json(searched)["searches"]
    assert (plain["winner"], plain["settings"]) == (1, {trials.RATE: 9.5e-3, trials.DROPOUT: 0.0})
    assert [trial["value"] for trial in plain["trials"]] == [10.0, 20.0, 15.0] and plain["trials"][0]["steps"] == 40
    assert plain["at_edge"][trials.RATE]["try"] == 0.1 and len(plain["expected_best"]) == 3
    against, expected = list(figures(searched, sweep([], [])))[-2:]
    assert len(against["svgs"]) == 2 and "training.learning_rate" in against["svgs"][0] and len(expected["svgs"]) == 1
